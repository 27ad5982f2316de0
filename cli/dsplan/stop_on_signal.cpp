#include "cli/dsplan/stop_on_signal.h"

#include <csignal>
#include <cstdlib>

namespace cli {
namespace {

// A handler can reach nothing else.
std::atomic<bool> stop = false;
std::atomic<int> received = 0;
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

void note(int signal) {
  if (stop) std::_Exit(128 + signal);
  received = signal;
  stop = true;
}

}  // namespace

StopOnSignal::StopOnSignal() {
  stop = false;
  received = 0;
  previous_interrupt_ = std::signal(SIGINT, note);
  previous_terminate_ = std::signal(SIGTERM, note);
}

StopOnSignal::~StopOnSignal() {
  std::signal(SIGINT, previous_interrupt_);
  std::signal(SIGTERM, previous_terminate_);
}

const std::atomic<bool>& StopOnSignal::wanted() const { return stop; }

int StopOnSignal::exit_code() const { return received == 0 ? 0 : 128 + received; }

}  // namespace cli
