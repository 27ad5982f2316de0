#include "planner/pricing/group_bounds.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace planner {
namespace {

using specs::ScheduleKind;

constexpr double never = std::numeric_limits<double>::infinity();

/// Σ_k min_g x_g t_k(g), over the groups in use.
double least_weighted(std::span<const GroupWork> groups, std::span<const double> weights) {
  double sum = 0;
  for (std::size_t kind = 0; kind < groups.front().of_kind.size(); ++kind) {
    double least = never;
    for (std::size_t group = 0; group < groups.size(); ++group)
      least = std::min(least, weights[group] * groups[group].of_kind[kind]);
    sum += least;
  }
  return sum;
}

double least_embedding(std::span<const GroupWork> groups, std::span<const double> weights) {
  double least = never;
  for (std::size_t group = 0; group < groups.size(); ++group)
    least = std::min(least, weights[group] * groups[group].embedding);
  return least;
}

/// 1 + β_i a_i by group.
std::vector<double> path_weights(const MixedPipeline& pipeline, std::span<const double> busy,
                                 std::span<const GroupWork> groups) {
  std::vector<double> weights(groups.size(), 1);
  std::vector<bool> shares(groups.size(), true);
  for (;;) {
    double turns = 1, speed = 0;
    for (std::size_t rank = 0; rank < busy.size(); ++rank) {
      const std::size_t group = pipeline.group_of_rank[rank];
      if (!shares[group]) continue;
      turns += 1 / busy[rank];
      speed += 1 / (busy[rank] * groups[group].seconds());
    }
    if (speed == 0) return weights;
    const double level = turns / speed;
    bool changed = false;
    for (std::size_t group = 0; group < groups.size(); ++group) {
      weights[group] = shares[group] ? level / groups[group].seconds() : 1;
      if (shares[group] && weights[group] < 1) {
        shares[group] = false;
        changed = true;
      }
    }
    if (!changed) return weights;
  }
}

}  // namespace

double GroupWork::seconds() const { return std::accumulate(of_kind.begin(), of_kind.end(), embedding); }

std::vector<double> busy_micro_batches(ScheduleKind kind, std::int64_t ranks, std::int64_t micro_batches,
                                       double backward_share) {
  std::vector<double> busy(static_cast<std::size_t>(ranks), static_cast<double>(micro_batches - 1));
  if (kind == ScheduleKind::gpipe) return busy;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    const std::int64_t ahead = std::min(ranks - rank, micro_batches);
    busy[static_cast<std::size_t>(rank)] =
        static_cast<double>(micro_batches - ahead) + static_cast<double>(ahead - 1) * backward_share;
  }
  return busy;
}

MixedPipelineBound mixed_pipeline_bound(const MixedPipeline& pipeline, std::span<const GroupWork> groups) {
  MixedPipelineBound bound;
  const double ranks = static_cast<double>(pipeline.group_of_rank.size());
  std::vector<double> weights;
  double speed = 0;
  for (const GroupWork& group : groups) weights.push_back(1 / group.seconds());
  for (const std::size_t group : pipeline.group_of_rank) speed += weights[group];
  bound.least_weight = ranks * *std::min_element(weights.begin(), weights.end()) / speed;
  bound.shared_seconds =
      pipeline.micro_batches * (least_weighted(groups, weights) + least_embedding(groups, weights)) / speed;
  bound.seconds = bound.shared_seconds;
  const bool path =
      pipeline.schedule == ScheduleKind::one_forward_one_backward || pipeline.schedule == ScheduleKind::gpipe;
  if (ranks == 1 || !path) return bound;
  const std::vector<double> once(groups.size(), 1);
  double seconds = 2 * (ranks - 1) * pipeline.transfer_seconds + least_embedding(groups, once);
  const std::vector<double> busy =
      busy_micro_batches(pipeline.schedule, static_cast<std::int64_t>(ranks),
                         static_cast<std::int64_t>(pipeline.micro_batches), pipeline.backward_share);
  const bool busy_ranks = std::all_of(busy.begin(), busy.end(), [](double each) { return each > 0; });
  seconds += least_weighted(groups, busy_ranks ? path_weights(pipeline, busy, groups) : once);
  bound.seconds = std::max(bound.seconds, seconds);
  return bound;
}

}  // namespace planner
