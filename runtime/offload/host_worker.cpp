#include "runtime/offload/host_worker.h"

#include <utility>

namespace runtime {

HostWorker::HostWorker() : thread_([this] { work(); }) {}

HostWorker::~HostWorker() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::int64_t HostWorker::submit(std::function<void()> job) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(job));
  }
  changed_.notify_all();
  return ++submitted_;
}

void HostWorker::wait_for(std::int64_t job) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return done_ >= job; });
  if (failure_) std::rethrow_exception(failure_);
}

void HostWorker::wait_for_all() { wait_for(submitted_); }

void HostWorker::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return ending_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    std::function<void()> job = std::move(waiting_.front());
    waiting_.pop_front();
    if (!failure_) {
      lock.unlock();
      std::exception_ptr failure;
      try {
        job();
      } catch (...) {
        failure = std::current_exception();
      }
      job = nullptr;  // what it holds goes before it counts as done
      lock.lock();
      failure_ = failure;
    }
    ++done_;
    changed_.notify_all();
  }
}

}  // namespace runtime
