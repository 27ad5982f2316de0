// This program started again as a child: its own process group, and it never outlives its parent.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace runtime {

struct ChildOptions {
  std::vector<std::string> arguments;              ///< after the program's name
  std::map<std::string, std::string> environment;  ///< added to the parent's, or replacing it
  /// Parent's descriptor → number in the child (1 standard output, 2 standard error, 3 a report channel).
  std::map<int, int> descriptors;
};

struct ChildStatus {
  int exit_code = 0;  ///< where `signal` is 0
  int signal = 0;     ///< that killed it
};

class ChildProcess {
 public:
  /// Error: std::system_error where the process cannot be made.
  static ChildProcess start(const ChildOptions& options);

  pid_t pid() const { return pid_; }
  /// Sent to the child's whole process group; nothing where it has ended.
  void send_signal(int signal) const;
  /// How it ended, or nothing while it runs.
  std::optional<ChildStatus> poll();
  ChildStatus wait();

 private:
  explicit ChildProcess(pid_t pid) : pid_(pid) {}

  pid_t pid_;
  std::optional<ChildStatus> status_;
};

}  // namespace runtime
