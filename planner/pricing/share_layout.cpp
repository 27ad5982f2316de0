#include "planner/pricing/share_layout.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cost_models/rank_price.h"
#include "specs/schedule/in_flight.h"

namespace planner {

ShareLayout::ShareLayout(const cost_models::Estimator& estimator, const GroupLayouts& layouts,
                         const specs::RegularPlacement& outer)
    : estimator_(estimator),
      outer_(outer),
      shares_(
          layouts.shares(outer.tensor * outer.context * outer.pipeline, outer.data * outer.accumulation)) {}

const ShareLayout::Replicas& ShareLayout::replicas(std::size_t group, std::int64_t share) {
  std::optional<Replicas>& known = replicas_[group][share > 1 ? 1 : 0];
  if (known) return *known;
  specs::RegularPlacement alike = outer_;
  alike.accumulation = share > 1 ? 2 : 1;
  const auto index = static_cast<std::int64_t>(group);
  known.emplace(Replicas{estimator_.stage_pricer(alike, index), {}, {}});
  const cost_models::PipelineCut& cut = estimator_.cut_of(outer_);
  for (const cost_models::StageRun& run : cut.stages)
    known->stages.insert(known->stages.end(), static_cast<std::size_t>(run.stages),
                         known->pricer.stage(run.counts));
  cost_models::balance_stages(estimator_.inputs(index), known->stages);
  for (const cost_models::RankRun& run : cut.ranks)
    known->ends.insert(known->ends.end(), static_cast<std::size_t>(run.ranks), known->pricer.end(run.counts));
  return *known;
}

double ShareLayout::seconds(std::int64_t share, std::size_t group) {
  const auto [known, unknown] = seconds_.try_emplace({group, share});
  if (unknown) {
    const Replicas& of_group = replicas(group, share);
    known->second = of_group.pricer.with_micro_batches(share).step(of_group.stages, of_group.ends);
  }
  return known->second;
}

double ShareLayout::least_seconds(std::int64_t share, std::size_t group) {
  const Replicas& of_group = replicas(group, share);
  return of_group.pricer.with_micro_batches(share).step_bound(of_group.stages, of_group.ends);
}

// It follows the micro-batches in flight, which for interleaved schedules do not only grow with their number.
const cost_models::StagePricer::Bytes& ShareLayout::memory(std::int64_t share, std::size_t group) {
  const std::int64_t in_flight =
      specs::peak_in_flight(outer_.schedule, outer_.pipeline, outer_.virtual_stages, share, 0, 0);
  const auto [known, unknown] = memory_.try_emplace({group, share > 1, in_flight});
  if (unknown) {
    const cost_models::StagePricer pricer = replicas(group, share).pricer.with_micro_batches(share);
    for (const cost_models::RankRun& run : estimator_.cut_of(outer_).ranks) {
      const auto bytes = pricer.memory(run.first_rank, run.counts);
      known->second.device = std::max(known->second.device, bytes.device);
      known->second.host_per_node = std::max(known->second.host_per_node, bytes.host_per_node);
    }
  }
  return known->second;
}

bool ShareLayout::fits(std::int64_t index, const GroupLimits& limits) {
  const auto shares = shares_.at(index);
  for (const std::size_t group : {0u, 1u}) {
    const auto& bytes = memory(shares[group], group);
    if (bytes.device > limits.device_bytes[group] || bytes.host_per_node > limits.host_bytes_per_node[group])
      return false;
  }
  return true;
}

bool ShareLayout::any_fits(const GroupLimits& limits) {
  if (!exists()) return false;
  if (fits(least_bound_index(), limits)) return true;
  for (std::int64_t index = 0; index < shares_.count; ++index)
    if (fits(index, limits)) return true;
  return false;
}

std::int64_t ShareLayout::least_bound_index() {
  if (least_bound_index_) return *least_bound_index_;
  const auto work = [this](std::size_t group) {
    double sum = 0;
    for (const cost_models::StageSeconds& stage : replicas(group, 2).stages) sum += stage.total();
    return sum;
  };
  const auto least = [this](std::int64_t share, std::size_t group) { return least_seconds(share, group); };
  least_bound_index_ = shares_.best(0, shares_.count - 1, shares_.balanced(work(0), work(1)), least);
  return *least_bound_index_;
}

double ShareLayout::bound_at(std::int64_t index) {
  const auto shares = shares_.at(index);
  return std::max(least_seconds(shares[0], 0), least_seconds(shares[1], 1));
}

double ShareLayout::bound() { return bound_at(least_bound_index()); }

// From where the bound is least outwards, on both sides, as far as it is below the best.
std::optional<ShareLayout::Best> ShareLayout::best(const GroupLimits& limits) {
  if (!exists()) return std::nullopt;
  constexpr double never = std::numeric_limits<double>::infinity();
  std::optional<Best> best;
  std::int64_t below = least_bound_index(), above = below + 1;
  double bound_below = bound_at(below), bound_above = above < shares_.count ? bound_at(above) : never;
  for (;;) {
    const double least = std::min(bound_below, bound_above);
    if (std::isinf(least) || (best && least >= best->step_seconds)) return best;
    const std::int64_t index = bound_below <= bound_above ? below : above;
    if (index == below) {
      --below;
      bound_below = below >= 0 ? bound_at(below) : never;
    } else {
      ++above;
      bound_above = above < shares_.count ? bound_at(above) : never;
    }
    if (!fits(index, limits)) continue;
    const auto shares = shares_.at(index);
    const double step_seconds = std::max(seconds(shares[0], 0), seconds(shares[1], 1));
    if (!best || step_seconds < best->step_seconds) best = Best{step_seconds, index};
  }
}

specs::Placement ShareLayout::placement(std::int64_t index) const {
  const auto shares = shares_.at(index);
  specs::RegularPlacement longest = outer_;
  longest.accumulation = std::max(shares[0], shares[1]);
  specs::Placement placement =
      specs::regular_placement(longest, specs::block_count(estimator_.inputs().model));
  placement.replica_shares = {{shares_.replicas[0], shares[0], 0}, {shares_.replicas[1], shares[1], 1}};
  return placement;
}

}  // namespace planner
