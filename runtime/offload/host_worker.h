// The thread of a rank that works on offloaded state while the rank goes on.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace runtime {

/// Does jobs one after the other, in the order in which they come.
class HostWorker {
 public:
  HostWorker();
  /// Does what has been submitted first.
  ~HostWorker();
  HostWorker(const HostWorker&) = delete;
  HostWorker& operator=(const HostWorker&) = delete;

  /// Returns the job's number; they count from 1.
  std::int64_t submit(std::function<void()> job);
  /// Returns once this job, and so every earlier one, is done. Rethrows what the first that failed has
  /// thrown; none is done after that one.
  void wait_for(std::int64_t job);
  void wait_for_all();
  std::int64_t submitted() const { return submitted_; }

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  std::int64_t submitted_ = 0;  ///< by the owner's thread alone
  std::int64_t done_ = 0;
  bool ending_ = false;
  std::exception_ptr failure_;
  std::thread thread_;  ///< last: it uses the others
};

}  // namespace runtime
