#include "runtime/comm/process_groups.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/comm/native_store.h"
#include "runtime/comm/process_group.h"

namespace runtime {
namespace {

/// Peers may still be starting when a group is made, however short the timeout of its operations.
constexpr std::chrono::seconds least_time_to_connect{60};

std::shared_ptr<BackendFactory> make_factory(CommunicationOptions options) {
  options.timeout = std::max<std::chrono::milliseconds>(options.timeout, least_time_to_connect);
  return options.device == DeviceKind::cpu ? make_gloo_factory(options) : make_nccl_factory(options);
}

}  // namespace

ProcessGroups::ProcessGroups(Rendezvous rendezvous, std::int64_t rank, CommunicationOptions options)
    : rendezvous_(std::move(rendezvous)),
      rank_(rank),
      options_(std::move(options)),
      traffic_(std::make_shared<Traffic>()),
      factory_(make_factory(options_)) {}

ProcessGroups::~ProcessGroups() = default;

Communicator ProcessGroups::communicator(std::string label, const std::vector<std::int64_t>& ranks) {
  const auto self = std::find(ranks.begin(), ranks.end(), rank_);
  if (self == ranks.end())
    throw std::logic_error(
        fmt::format("rank {} asks for a group it is not in: {}", rank_, fmt::join(ranks, ",")));
  if (ranks.size() == 1) return Communicator(std::move(label), rank_);

  std::shared_ptr<ProcessGroup>& group = groups_[ranks];
  if (!group) {
    auto made = std::make_shared<ProcessGroup>();
    made->ranks = ranks;
    made->rank = self - ranks.begin();
    try {
      made->backend = factory_->make(*rendezvous_.native(), fmt::format("group/{}", fmt::join(ranks, ",")),
                                     made->rank, static_cast<std::int64_t>(ranks.size()));
      made->backend->setTimeout(options_.timeout);
    } catch (const std::exception& error) {
      const std::string detail = first_line(error);
      throw CommunicationError(classify(detail), label, "connect", 0, ranks, detail);
    }
    group = std::move(made);
  }
  return Communicator(std::move(label), group, traffic_);
}

}  // namespace runtime
