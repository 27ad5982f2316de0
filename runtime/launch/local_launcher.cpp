#include "runtime/launch/local_launcher.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "runtime/comm/rendezvous.h"
#include "runtime/launch/child_process.h"
#include "runtime/launch/exit_codes.h"
#include "runtime/launch/line_prefix.h"
#include "runtime/launch/line_relay.h"
#include "runtime/launch/rank_failure.h"

namespace runtime {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* failure_variable = "DSRUN_FAILURE_CHANNEL";
constexpr int failure_descriptor = 3;
constexpr std::chrono::seconds rendezvous_timeout{60};
/// After the first failure the others are left this long to say whether it was theirs.
constexpr std::chrono::milliseconds time_to_tell{700};
/// Output that a dead rank's descendants might still hold open is not waited for longer.
constexpr std::chrono::milliseconds time_to_drain{500};

struct Pipe {
  int read = -1;
  int write = -1;
  static Pipe open() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
      throw std::system_error(errno, std::generic_category(), "cannot open a pipe");
    return {ends[0], ends[1]};
  }
};

/// One rank: its process, its three channels, and how it ended.
class Rank {
 public:
  Rank(std::int64_t number, ChildOptions options)
      : number_(number),
        output_(STDOUT_FILENO, number == 0 ? "" : line_prefix(number)),  // rank 0 speaks for the job
        errors_(STDERR_FILENO, line_prefix(number)) {
    const Pipe pipes[3] = {Pipe::open(), Pipe::open(), Pipe::open()};
    options.descriptors = {{pipes[0].write, STDOUT_FILENO},
                           {pipes[1].write, STDERR_FILENO},
                           {pipes[2].write, failure_descriptor}};
    process_ = std::make_unique<ChildProcess>(ChildProcess::start(options));
    for (int i = 0; i < 3; ++i) {
      close(pipes[i].write);
      channels_[i] = pipes[i].read;
      fcntl(channels_[i], F_SETFL, O_NONBLOCK);
    }
  }

  std::int64_t number() const { return number_; }
  bool running() const { return !status_; }
  bool open() const {
    return std::any_of(channels_, channels_ + 3, [](int fd) { return fd >= 0; });
  }
  const int* channels() const { return channels_; }
  void send_signal(int signal) const { process_->send_signal(signal); }
  Clock::time_point ended_at() const { return ended_at_; }

  void read_channels() {
    char buffer[16384];
    for (int i = 0; i < 3; ++i) {
      while (channels_[i] >= 0) {
        const ssize_t got = read(channels_[i], buffer, sizeof(buffer));
        if (got > 0) {
          const std::string_view bytes(buffer, static_cast<std::size_t>(got));
          if (i == 0) output_.feed(bytes);
          if (i == 1) errors_.feed(bytes);
          if (i == 2) told_ += bytes;
        } else if (got == 0) {
          close(channels_[i]);
          channels_[i] = -1;
        } else {
          break;
        }
      }
    }
  }

  void poll_status() {
    if (status_) return;
    status_ = process_->poll();
    if (status_) ended_at_ = Clock::now();
  }

  void finish() {
    read_channels();
    output_.finish();
    errors_.finish();
    for (int& channel : channels_) {
      if (channel >= 0) close(channel);
      channel = -1;
    }
  }

  /// Why lines that it printed are lost; 0 where none is.
  int output_error() const { return output_.error(); }

  /// Nothing where the rank ended well or runs.
  std::optional<RankFailure> failure() const {
    if (!status_ || (status_->signal == 0 && status_->exit_code == 0)) return std::nullopt;
    if (!told_.empty()) return RankFailure::parse(told_);
    if (status_->signal != 0)
      return RankFailure{
          exit_rank_died, false,
          fmt::format(
              "killed by signal {} ({}){}", status_->signal, strsignal(status_->signal),
              status_->signal == SIGBUS ? ": did a file of the data become shorter, or the disk full?" : "")};
    return RankFailure{status_->exit_code, false, fmt::format("ended with exit code {}", status_->exit_code)};
  }

 private:
  std::int64_t number_;
  LineRelay output_;
  LineRelay errors_;
  std::string told_;
  std::unique_ptr<ChildProcess> process_;
  int channels_[3] = {-1, -1, -1};
  std::optional<ChildStatus> status_;
  Clock::time_point ended_at_;
};

/// SIGINT, SIGTERM, SIGHUP and SIGCHLD as a descriptor; blocked in this thread and in all it starts.
class SignalDescriptor {
 public:
  SignalDescriptor() {
    sigset_t signals;
    sigemptyset(&signals);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) sigaddset(&signals, signal);
    sigprocmask(SIG_BLOCK, &signals, &before_);
    descriptor_ = signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
  }
  ~SignalDescriptor() {
    close(descriptor_);
    sigprocmask(SIG_SETMASK, &before_, nullptr);
  }
  SignalDescriptor(const SignalDescriptor&) = delete;
  SignalDescriptor& operator=(const SignalDescriptor&) = delete;

  int descriptor() const { return descriptor_; }
  /// The next signal that asks this program to end; 0 where there is none.
  int next_request() const {
    signalfd_siginfo info{};
    while (read(descriptor_, &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info)))
      if (info.ssi_signo != SIGCHLD) return static_cast<int>(info.ssi_signo);
    return 0;
  }

 private:
  sigset_t before_{};
  int descriptor_ = -1;
};

class LocalJob {
 public:
  explicit LocalJob(const LocalLaunch& launch)
      : launch_(launch), rendezvous_(Rendezvous::host({"127.0.0.1", 0}, rendezvous_timeout)) {}

  int run() {
    for (std::int64_t rank = 0; rank < launch_.ranks; ++rank)
      ranks_.push_back(std::make_unique<Rank>(rank, options_of(rank)));
    while (any_running()) {
      wait_for_news();
      for (const auto& rank : ranks_) {
        rank->read_channels();
        rank->poll_status();
      }
      handle_request();
      handle_failure();
    }
    drain();
    return report();
  }

 private:
  ChildOptions options_of(std::int64_t rank) const {
    const auto cores = static_cast<std::int64_t>(std::max(1U, std::thread::hardware_concurrency()));
    const std::int64_t threads = launch_.threads_per_rank > 0
                                     ? launch_.threads_per_rank
                                     : std::max<std::int64_t>(1, cores / launch_.ranks);
    ChildOptions options;
    options.arguments = launch_.arguments;
    options.environment = {{"RANK", std::to_string(rank)},
                           {"WORLD_SIZE", std::to_string(launch_.ranks)},
                           {"LOCAL_RANK", std::to_string(rank)},
                           {"LOCAL_WORLD_SIZE", std::to_string(launch_.ranks)},
                           {"MASTER_ADDR", "127.0.0.1"},
                           {"MASTER_PORT", std::to_string(rendezvous_.address().port)},
                           {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                           {"TORCHELASTIC_RESTART_COUNT", "0"},
                           {failure_variable, std::to_string(failure_descriptor)}};
    const auto unless_set = [&](const char* name, std::string value) {
      if (std::getenv(name) == nullptr) options.environment.emplace(name, std::move(value));
    };
    unless_set("OMP_NUM_THREADS", std::to_string(threads));
    unless_set("OMP_WAIT_POLICY", "PASSIVE");  // ranks share cores: spinning costs more than waking
    unless_set("GLOO_SOCKET_IFNAME", "lo");
    unless_set("TORCH_CPP_LOG_LEVEL", "ERROR");
    return options;
  }

  bool any_running() const {
    return std::any_of(ranks_.begin(), ranks_.end(), [](const auto& rank) { return rank->running(); });
  }

  void wait_for_news() {
    std::vector<pollfd> news{{signals_.descriptor(), POLLIN, 0}};
    for (const auto& rank : ranks_)
      for (int i = 0; i < 3; ++i)
        if (rank->channels()[i] >= 0) news.push_back({rank->channels()[i], POLLIN, 0});
    poll(news.data(), news.size(), 100);
  }

  void signal_all(int signal) const {
    for (const auto& rank : ranks_)
      if (rank->running()) rank->send_signal(signal);
  }

  void handle_request() {
    if (const int signal = signals_.next_request(); signal != 0) {
      if (request_ != 0) kill_at_ = Clock::now();  // asked twice: at once
      if (request_ == 0) {
        request_ = signal;
        stop();
      }
    }
    if (kill_at_ && Clock::now() >= *kill_at_) signal_all(SIGKILL);
  }

  void handle_failure() {
    if (stop_asked_) return;
    const bool failed =
        std::any_of(ranks_.begin(), ranks_.end(), [](const auto& rank) { return rank->failure(); });
    if (failed && !stop_at_) stop_at_ = Clock::now() + time_to_tell;
    if (stop_at_ && Clock::now() >= *stop_at_) {
      cause_ = cause();
      stop();
    }
  }

  void stop() {
    stop_asked_ = true;
    signal_all(SIGTERM);
    kill_at_ = Clock::now() + launch_.grace;
  }

  /// The rank that failed first by itself; where all only lost a peer, the first of them.
  const Rank* cause() const {
    const Rank* first = nullptr;
    for (const auto& rank : ranks_) {
      const std::optional<RankFailure> failure = rank->failure();
      if (!failure) continue;
      const auto order = [](const Rank& r) { return std::pair(r.failure()->consequence, r.ended_at()); };
      if (first == nullptr || order(*rank) < order(*first)) first = rank.get();
    }
    return first;
  }

  void drain() {
    const auto deadline = Clock::now() + time_to_drain;
    while (Clock::now() < deadline &&
           std::any_of(ranks_.begin(), ranks_.end(), [](const auto& rank) { return rank->open(); })) {
      wait_for_news();
      for (const auto& rank : ranks_) rank->read_channels();
    }
    for (const auto& rank : ranks_) rank->finish();
  }

  int report() const {
    if (request_ != 0) {
      fmt::print(stderr, "dsrun: ended by signal {} ({}); the last whole checkpoint is kept\n", request_,
                 strsignal(request_));
      return exit_signal_base + request_;
    }
    const Rank* failed = cause_ != nullptr ? cause_ : cause();
    if (failed == nullptr) return report_output();
    const RankFailure failure = *failed->failure();
    fmt::print(stderr, "{}error: {}\n", line_prefix(failed->number()), failure.message);
    return failure.exit_code;
  }

  /// Whether all that the ranks printed was written.
  int report_output() const {
    for (const auto& rank : ranks_)
      if (const int error = rank->output_error(); error != 0) {
        fmt::print(stderr, "error: the output of rank {} cannot be written: {}\n", rank->number(),
                   strerror(error));
        return exit_storage;
      }
    return exit_done;
  }

  LocalLaunch launch_;
  SignalDescriptor signals_;  // before the rendezvous, whose threads are to inherit the blocked signals
  Rendezvous rendezvous_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  int request_ = 0;
  bool stop_asked_ = false;
  const Rank* cause_ = nullptr;
  std::optional<Clock::time_point> stop_at_;
  std::optional<Clock::time_point> kill_at_;
};

}  // namespace

int run_local(const LocalLaunch& launch) { return LocalJob(launch).run(); }

int failure_channel() {
  const char* text = std::getenv(failure_variable);
  return text == nullptr ? -1 : std::atoi(text);
}

}  // namespace runtime
