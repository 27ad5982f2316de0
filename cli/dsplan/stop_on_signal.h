// Ctrl-C and SIGTERM as a wish to stop: what runs looks at it and ends in order; a second one ends at once.
#pragma once

#include <atomic>

namespace cli {

/// Handlers are set for its lifetime and restored at the end. One at a time.
class StopOnSignal {
 public:
  StopOnSignal();
  ~StopOnSignal();
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;

  /// True once a signal has come.
  const std::atomic<bool>& wanted() const;

  /// 128 and the number of the signal that came; 0 without one.
  int exit_code() const;

 private:
  void (*previous_interrupt_)(int);
  void (*previous_terminate_)(int);
};

}  // namespace cli
