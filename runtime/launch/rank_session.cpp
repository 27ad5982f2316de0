#include "runtime/launch/rank_session.h"

#include <cstdio>
#include <stdexcept>

#include <fmt/format.h>
#include <unistd.h>

#include "runtime/launch/local_launcher.h"

namespace runtime {

Rendezvous join(const RankIdentity& identity, std::chrono::milliseconds timeout) {
  const RendezvousAddress address{identity.rendezvous_host, identity.rendezvous_port};
  const bool hosts = identity.rank == 0 && !identity.store_is_hosted;
  const Rendezvous store = hosts ? Rendezvous::host(address, timeout) : Rendezvous::connect(address, timeout);
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

void wait_for_all(const Rendezvous& rendezvous, const std::string& name, std::int64_t world_size,
                  std::chrono::milliseconds timeout) {
  const std::int64_t here = rendezvous.add(name + "/ranks", 1);
  if (here == world_size) rendezvous.set(name + "/all", "yes");
  if (!rendezvous.get(name + "/all", timeout))
    throw std::runtime_error(fmt::format("only {} of {} ranks came together within {} s ({})",
                                         rendezvous.add(name + "/ranks", 0), world_size,
                                         timeout.count() / 1000, name));
}

void report_failure(std::int64_t rank, const RankFailure& failure) {
  if (const int channel = failure_channel(); channel >= 0) {
    const std::string text = failure.text();
    if (write(channel, text.data(), text.size()) == static_cast<ssize_t>(text.size())) return;
  }
  fmt::print(stderr, "rank {}: error: {}\n", rank, failure.message);
  std::fflush(stderr);
}

}  // namespace runtime
