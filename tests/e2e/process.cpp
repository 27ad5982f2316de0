#include "tests/e2e/process.h"

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace e2e {
namespace {

void redirect(const std::filesystem::path& path, int descriptor) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
  dup2(file, descriptor);
  close(file);
}

}  // namespace

Process::Process(const std::filesystem::path& program, const ProcessOptions& options)
    : output_(streams_.path() / "out"), errors_(streams_.path() / "err") {
  pid_ = fork();
  if (pid_ < 0) throw std::runtime_error("fork failed");
  if (pid_ > 0) return;
  redirect(output_, STDOUT_FILENO);
  redirect(errors_, STDERR_FILENO);
  if (!options.directory.empty() && chdir(options.directory.c_str()) != 0) _exit(126);
  for (const auto& [name, value] : options.environment) setenv(name.c_str(), value.c_str(), 1);
  if (options.largest_file_bytes) {
    const auto limit = static_cast<rlim_t>(*options.largest_file_bytes);
    const rlimit limits{limit, limit};
    setrlimit(RLIMIT_FSIZE, &limits);
  }
  std::vector<std::string> arguments = options.arguments;
  std::vector<char*> argv{const_cast<char*>(program.c_str())};
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  execv(program.c_str(), argv.data());
  _exit(127);
}

Process::~Process() {
  if (!code_) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
}

void Process::send_signal(int signal) const {
  if (!code_) kill(pid_, signal);
}

std::optional<int> Process::wait(std::chrono::milliseconds timeout) {
  eventually(
      [&] {
        int status = 0;
        if (!code_ && waitpid(pid_, &status, WNOHANG) == pid_)
          code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
        return code_.has_value();
      },
      timeout);
  return code_;
}

std::string Process::output() const { return read_file(output_); }
std::string Process::errors() const { return read_file(errors_); }

std::vector<pid_t> Process::children() const {
  const std::string pid = std::to_string(pid_);
  std::istringstream list(read_file("/proc/" + pid + "/task/" + pid + "/children"));
  std::vector<pid_t> children;
  for (pid_t child = 0; list >> child;) children.push_back(child);
  return children;
}

bool runs(pid_t pid) { return kill(pid, 0) == 0; }

std::string read_file(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

void write_file(const std::filesystem::path& path, const std::string& text) { std::ofstream(path) << text; }

}  // namespace e2e
