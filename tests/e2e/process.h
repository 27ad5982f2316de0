// A program started as a user would, watched from outside.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "tests/support/temporary_folder.h"

namespace e2e {

struct ProcessOptions {
  std::vector<std::string> arguments;
  std::map<std::string, std::string> environment;  ///< added to this process's
  std::filesystem::path directory;                 ///< where it runs; empty: here
  std::optional<std::int64_t> largest_file_bytes;  ///< RLIMIT_FSIZE
};

class Process {
 public:
  Process(const std::filesystem::path& program, const ProcessOptions& options);
  /// Kills what still runs.
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  void send_signal(int signal) const;
  /// Exit code, 128 + signal, or nothing where it still runs after `timeout`.
  std::optional<int> wait(std::chrono::milliseconds timeout = std::chrono::seconds(120));
  /// What it has printed so far.
  std::string output() const;
  std::string errors() const;
  std::vector<pid_t> children() const;

 private:
  pid_t pid_ = -1;
  std::optional<int> code_;
  const tests::TemporaryFolder streams_;
  const std::filesystem::path output_;
  const std::filesystem::path errors_;
};

bool runs(pid_t pid);

std::string read_file(const std::filesystem::path& path);
void write_file(const std::filesystem::path& path, const std::string& text);

/// Asks every 20 ms; false after `timeout`.
template <class Condition>
bool eventually(Condition condition, std::chrono::milliseconds timeout = std::chrono::seconds(60));

}  // namespace e2e

#include <thread>

template <class Condition>
bool e2e::eventually(Condition condition, std::chrono::milliseconds timeout) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}
