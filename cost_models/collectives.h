// α–β times of collectives over the cluster's link classes.
//
// A group of n ranks lies in d domains of the fast link (a node, or an NVLink domain of several trays), n/d
// ranks in each. `bytes` is the whole tensor: the result of an all-gather, the input of a reduce-scatter, the
// tensor of an all-reduce, what one rank holds before an all-to-all, the message of a send.
//
// Hierarchical rings: inside the domain bytes·(n−1)/n at the link rate; between domains bytes·(d−1)/d shared
// by the network cards of the domain's ranks; so between the groups that each further level of switches
// joins, at its share of the rate. All run at once, so the slowest counts. A flat ring moves bytes·(n−1)/n
// through the slowest link. An all-reduce is a reduce-scatter and an all-gather.
#pragma once

#include <cstdint>
#include <vector>

#include "specs/language/measured_rates.h"

namespace cost_models {

enum class Collective : std::uint8_t { all_reduce, all_gather, reduce_scatter, all_to_all, send_receive };

enum class CollectiveAlgorithm : std::uint8_t { hierarchical, flat_ring, tree };

struct RankGroup {
  double ranks = 1;
  double ranks_per_domain = 1;  ///< of this group
  double stride = 0;            ///< ranks of the job between neighbours; 0: all in one place
  double inner = 0;             ///< of two axes, the ranks of the inner one; 0: one axis
  double outer_stride = 0;      ///< between neighbours of the other
  double domains() const { return ranks > ranks_per_domain ? ranks / ranks_per_domain : 1; }
  /// Ranks among so many consecutive devices.
  double within(double devices) const;
};

/// A level of switches above the first, which joins groups of `devices`.
struct NetworkTier {
  double devices = 0;
  double slowdown = 1;      ///< of what crosses it, against the rate between domains
  double step_seconds = 0;  ///< latency that crossing it adds
};

/// A group of `ranks` ranks that lie `stride` apart, where a domain holds `domain_devices` consecutive ones.
RankGroup rank_group(double ranks, double stride, double domain_devices);

struct LinkRates {
  double link_bytes_per_second =
      0;  ///< of one device inside the domain, one direction, as collectives reach it
  double network_bytes_per_second = 0;  ///< of one device between domains, the same
  double call_seconds = 0;              ///< of starting one collective
  double link_step_seconds = 0;         ///< latency of one step inside the domain
  double network_step_seconds = 0;      ///< latency of one step between domains
  double domain_devices = 8;
  std::vector<NetworkTier> tiers;               ///< from below
  std::vector<specs::CollectiveRate> measured;  ///< replace the formulas inside a domain where present
};

/// By how much the highest level of switches slows what crosses it.
double slowdown_across(const RankGroup& group, const LinkRates& rates);
/// Latency of the steps of a ring between domains.
double network_steps_seconds(const RankGroup& group, const LinkRates& rates);

/// Latency is paid even where the transfer is hidden.
struct CollectiveSeconds {
  double latency = 0;
  double transfer = 0;
  double total() const { return latency + transfer; }
};

CollectiveSeconds collective_seconds(Collective collective, double bytes, const RankGroup& group,
                                     const LinkRates& rates,
                                     CollectiveAlgorithm algorithm = CollectiveAlgorithm::hierarchical);

}  // namespace cost_models
