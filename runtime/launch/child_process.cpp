#include "runtime/launch/child_process.h"

#include <cerrno>
#include <cstring>
#include <system_error>

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace runtime {
namespace {

constexpr const char* this_program = "/proc/self/exe";

std::vector<std::string> merged_environment(const std::map<std::string, std::string>& added) {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!added.contains(text.substr(0, text.find('=')))) entries.push_back(text);
  }
  for (const auto& [name, value] : added) entries.push_back(name + "=" + value);
  return entries;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  out.reserve(texts.size() + 1);
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

ChildStatus decode(int status) {
  if (WIFSIGNALED(status)) return {.exit_code = 0, .signal = WTERMSIG(status)};
  return {.exit_code = WEXITSTATUS(status), .signal = 0};
}

/// Between fork and exec only async-signal-safe calls are allowed: other threads' locks may be held for ever.
[[noreturn]] void become_child(pid_t parent, const std::vector<std::pair<int, int>>& descriptors, char** argv,
                               char** envp) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int signal : {SIGINT, SIGTERM, SIGPIPE, SIGCHLD}) ::signal(signal, SIG_DFL);
  // First out of the way of all targets, then into place: a source may have the number of another's target.
  constexpr int parking = 100;
  for (std::size_t i = 0; i < descriptors.size(); ++i)
    if (dup2(descriptors[i].first, parking + static_cast<int>(i)) < 0) _exit(127);
  for (std::size_t i = 0; i < descriptors.size(); ++i) {
    if (dup2(parking + static_cast<int>(i), descriptors[i].second) < 0) _exit(127);
    close(parking + static_cast<int>(i));
  }
  execve(this_program, argv, envp);
  _exit(127);
}

}  // namespace

ChildProcess ChildProcess::start(const ChildOptions& options) {
  std::vector<std::string> arguments = options.arguments;
  char program[4096];
  const ssize_t length = readlink(this_program, program, sizeof(program));
  arguments.insert(arguments.begin(),
                   length > 0 ? std::string(program, static_cast<std::size_t>(length)) : "");
  std::vector<std::string> environment = merged_environment(options.environment);
  const std::vector<char*> argv = pointers(arguments);
  const std::vector<char*> envp = pointers(environment);
  const std::vector<std::pair<int, int>> descriptors(options.descriptors.begin(), options.descriptors.end());

  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) throw std::system_error(errno, std::generic_category(), "cannot start a process");
  if (pid == 0)
    become_child(parent, descriptors, const_cast<char**>(argv.data()), const_cast<char**>(envp.data()));
  setpgid(pid, pid);
  return ChildProcess(pid);
}

void ChildProcess::send_signal(int signal) const {
  if (!status_) kill(-pid_, signal);
}

std::optional<ChildStatus> ChildProcess::poll() {
  if (status_) return status_;
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) == pid_) status_ = decode(status);
  return status_;
}

ChildStatus ChildProcess::wait() {
  int status = 0;
  while (!status_) {
    if (waitpid(pid_, &status, 0) == pid_)
      status_ = decode(status);
    else if (errno != EINTR)
      status_ = ChildStatus{};
  }
  return *status_;
}

}  // namespace runtime
