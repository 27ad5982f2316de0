#include "cost_models/collectives.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace cost_models {
namespace {

specs::MeasuredCollective measured_kind(Collective collective) {
  switch (collective) {
    case Collective::all_reduce:
      return specs::MeasuredCollective::all_reduce;
    case Collective::all_gather:
      return specs::MeasuredCollective::all_gather;
    case Collective::reduce_scatter:
      return specs::MeasuredCollective::reduce_scatter;
    default:
      return specs::MeasuredCollective::send_receive;
  }
}

// The measurement with the nearest number of ranks; beyond the largest one, time grows with the ring's steps.
std::optional<CollectiveSeconds> measured_seconds(Collective collective, double bytes, double ranks,
                                                  const LinkRates& rates) {
  const specs::CollectiveRate* nearest = nullptr;
  for (const specs::CollectiveRate& rate : rates.measured) {
    if (rate.collective != measured_kind(collective)) continue;
    const auto distance = [ranks](const specs::CollectiveRate& candidate) {
      return std::abs(static_cast<double>(candidate.ranks) - ranks);
    };
    if (nearest == nullptr || distance(rate) < distance(*nearest)) nearest = &rate;
  }
  if (nearest == nullptr) return std::nullopt;
  const double steps = ranks / static_cast<double>(nearest->ranks);
  const double scale = collective == Collective::send_receive ? 1 : std::max(1.0, steps);
  return CollectiveSeconds{nearest->latency_seconds * scale, bytes / nearest->bytes_per_second * scale};
}

CollectiveSeconds one_way(double bytes, const RankGroup& group, const LinkRates& rates,
                          CollectiveAlgorithm algorithm) {
  const double n = group.ranks;
  const double domains = group.domains();
  const double inside = std::min(n, group.ranks_per_domain);
  const double link = inside > 1 ? 1 / rates.link_bytes_per_second : 0;
  const double network = domains > 1 ? 1 / (rates.network_bytes_per_second * group.ranks_per_domain) : 0;
  CollectiveSeconds seconds;
  seconds.latency =
      rates.call_seconds + rates.link_step_seconds * (n - 1) + network_steps_seconds(group, rates);
  switch (algorithm) {
    case CollectiveAlgorithm::hierarchical:
      seconds.transfer = bytes * std::max((n - 1) / n * link, (domains - 1) / domains * network);
      for (const NetworkTier& tier : rates.tiers) {
        const double held = group.within(tier.devices), groups = n / held;
        if (groups > 1)
          seconds.transfer = std::max(seconds.transfer, bytes * (groups - 1) / groups * tier.slowdown /
                                                            (rates.network_bytes_per_second * held));
      }
      break;
    case CollectiveAlgorithm::flat_ring:
      seconds.transfer = bytes * (n - 1) / n * std::max(link, network * slowdown_across(group, rates));
      break;
    case CollectiveAlgorithm::tree:
      // A double binary tree sends each byte once up or down; each rank is a leaf of one of the trees.
      seconds.transfer = bytes * std::max(link, network * slowdown_across(group, rates));
      seconds.latency = rates.call_seconds +
                        rates.link_step_seconds * std::ceil(std::log2(std::max(inside, 1.0))) +
                        rates.network_step_seconds * std::ceil(std::log2(domains));
      break;
  }
  return seconds;
}

CollectiveSeconds all_to_all(double bytes, const RankGroup& group, const LinkRates& rates) {
  const double inside = std::min(group.ranks, group.ranks_per_domain);
  const bool leaves = group.domains() > 1;
  CollectiveSeconds seconds;
  seconds.latency = rates.call_seconds + (leaves ? rates.network_step_seconds : 0);
  seconds.transfer = bytes * (inside - 1) / group.ranks / rates.link_bytes_per_second;
  if (leaves)
    seconds.transfer +=
        bytes * (1 - inside / group.ranks) * slowdown_across(group, rates) / rates.network_bytes_per_second;
  return seconds;
}

}  // namespace

double RankGroup::within(double devices) const {
  if (stride <= 0) return ranks;
  const double of_inner = std::clamp(std::floor(devices / stride), 1.0, std::max(ranks, 1.0));
  if (inner <= 0 || of_inner <= inner) return of_inner;
  return std::min(of_inner, inner * std::max(1.0, std::floor(devices / outer_stride)));
}

RankGroup rank_group(double ranks, double stride, double domain_devices) {
  RankGroup group{.ranks = ranks, .stride = stride};
  group.ranks_per_domain = group.within(domain_devices);
  return group;
}

double slowdown_across(const RankGroup& group, const LinkRates& rates) {
  double slowdown = 1;
  for (const NetworkTier& tier : rates.tiers)
    if (group.ranks > group.within(tier.devices)) slowdown = tier.slowdown;
  return slowdown;
}

double network_steps_seconds(const RankGroup& group, const LinkRates& rates) {
  double seconds = rates.network_step_seconds * (group.domains() - 1);
  for (const NetworkTier& tier : rates.tiers)
    seconds += tier.step_seconds * (group.ranks / group.within(tier.devices) - 1);
  return seconds;
}

CollectiveSeconds collective_seconds(Collective collective, double bytes, const RankGroup& group,
                                     const LinkRates& rates, CollectiveAlgorithm algorithm) {
  if (group.ranks <= 1 || bytes <= 0) return {};
  if (group.domains() <= 1 && !rates.measured.empty() && collective != Collective::all_to_all)
    if (const auto seconds = measured_seconds(collective, bytes, group.ranks, rates)) return *seconds;
  switch (collective) {
    case Collective::all_reduce: {
      const CollectiveSeconds half = one_way(bytes, group, rates, algorithm);
      return {2 * half.latency, 2 * half.transfer};
    }
    case Collective::all_gather:
    case Collective::reduce_scatter:
      return one_way(bytes, group, rates, algorithm);
    case Collective::all_to_all:
      return all_to_all(bytes, group, rates);
    case Collective::send_receive:
      if (group.domains() > 1)
        return {rates.call_seconds + network_steps_seconds(group, rates),
                bytes * slowdown_across(group, rates) / rates.network_bytes_per_second};
      return {rates.call_seconds + rates.link_step_seconds, bytes / rates.link_bytes_per_second};
  }
  return {};
}

}  // namespace cost_models
