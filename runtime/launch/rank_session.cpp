#include "runtime/launch/rank_session.h"

#include <cstdio>
#include <exception>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "runtime/launch/line_prefix.h"
#include "runtime/launch/local_launcher.h"
#include "runtime/launch/run_error.h"

namespace runtime {
namespace {

using Clock = std::chrono::steady_clock;

std::string seconds_of(std::chrono::milliseconds time) {
  return fmt::format("{:g} s", static_cast<double>(time.count()) / 1000);
}

Rendezvous reach(const RendezvousAddress& address, std::chrono::milliseconds timeout) {
  const auto start = Clock::now();
  try {
    return Rendezvous::connect(address, timeout);
  } catch (const std::exception& error) {
    if (Clock::now() - start < timeout * 0.9) throw;
    throw RunError(exit_timeout, fmt::format("rank 0 did not open the rendezvous within {}: {}",
                                             seconds_of(timeout), error.what()));
  }
}

/// The ranks whose key under `name` is not there.
std::vector<std::int64_t> ranks_without(const Rendezvous& rendezvous, const std::string& name,
                                        std::int64_t world_size) {
  std::vector<std::int64_t> absent;
  for (std::int64_t rank = 0; rank < world_size; ++rank)
    if (!rendezvous.has(fmt::format("{}/{}", name, rank))) absent.push_back(rank);
  return absent;
}

}  // namespace

Rendezvous join(const RankIdentity& identity, std::chrono::milliseconds timeout) {
  const RendezvousAddress address{identity.rendezvous_host, identity.rendezvous_port};
  const bool hosts = identity.rank == 0 && !identity.store_is_hosted;
  const Rendezvous store = hosts ? Rendezvous::host(address, timeout) : reach(address, timeout);
  return store.under(fmt::format("dsrun/{}", identity.restart));
}

std::string compare_with_rank_zero(const Rendezvous& rendezvous, std::int64_t rank, const std::string& key,
                                   const std::string& value, std::chrono::milliseconds timeout) {
  if (rank == 0) {
    rendezvous.set(key, value);
    return {};
  }
  const std::optional<std::string> first = rendezvous.get(key, timeout);
  return first && *first != value ? *first : std::string();
}

void wait_for_all(const Rendezvous& rendezvous, const std::string& name, const RankIdentity& identity,
                  std::chrono::milliseconds timeout) {
  rendezvous.set(fmt::format("{}/{}", name, identity.rank), "here");
  if (rendezvous.add(name + "/ranks", 1) == identity.world_size) rendezvous.set(name + "/all", "yes");
  if (rendezvous.get(name + "/all", timeout)) return;
  const std::vector<std::int64_t> absent = ranks_without(rendezvous, name, identity.world_size);
  throw RunError(exit_timeout, fmt::format("{} of {} ranks came together within {}; absent: rank{} {}",
                                           identity.world_size - static_cast<std::int64_t>(absent.size()),
                                           identity.world_size, seconds_of(timeout),
                                           absent.size() == 1 ? "" : "s", fmt::join(absent, ", ")));
}

std::vector<std::int64_t> silent_ranks(const Rendezvous& rendezvous, const RankIdentity& identity,
                                       std::chrono::milliseconds patience) {
  const std::string name = "gave up";
  const auto deadline = Clock::now() + patience;
  rendezvous.set(fmt::format("{}/{}", name, identity.rank), "yes");
  // Not a wait for a key: where that times out, c10d writes warnings among the error messages.
  std::vector<std::int64_t> silent = ranks_without(rendezvous, name, identity.world_size);
  while (!silent.empty() && Clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    silent = ranks_without(rendezvous, name, identity.world_size);
  }
  return silent;
}

void report_failure(std::int64_t rank, const RankFailure& failure) {
  if (const int channel = failure_channel(); channel >= 0) {
    const std::string text = failure.text();
    if (write(channel, text.data(), text.size()) == static_cast<ssize_t>(text.size())) return;
  }
  fmt::print(stderr, "{}error: {}\n", line_prefix(rank), failure.message);
  std::fflush(stderr);
}

}  // namespace runtime
