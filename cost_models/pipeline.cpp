#include "cost_models/pipeline.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "specs/schedule/generate.h"
#include "specs/schedule/in_flight.h"

namespace cost_models {
namespace {

using specs::ScheduleKind;

bool goes_there_and_back(ScheduleKind kind) { return specs::layout_of(kind) == specs::StageLayout::v_shape; }

std::vector<double> rank_totals(const PipelineShape& shape, std::span<const StageSeconds> stages) {
  const auto ranks = static_cast<std::size_t>(shape.ranks);
  std::vector<double> totals(ranks);
  bool back = false;
  for (std::size_t first = 0; first < stages.size(); first += ranks) {
    const std::span<const StageSeconds> lap = stages.subspan(first, std::min(ranks, stages.size() - first));
    for (std::size_t place = 0; place < lap.size(); ++place)
      totals[back ? ranks - 1 - place : place] += lap[place].total();
    back = !back && goes_there_and_back(shape.schedule);
  }
  return totals;
}

/// Whether a rank's last action is the backward pass of its first stage, whose gradient goes back.
bool ends_with_gradients(ScheduleKind kind) {
  return kind == ScheduleKind::one_forward_one_backward || kind == ScheduleKind::interleaved;
}

// Backwards from the last rank, where the backward passes start.
double gpipe_seconds(double micro_batches, const PipelineLoad& load) {
  double forward_way = 0, slowest_forward = 0;
  for (const StageSeconds& stage : load.stages) {
    forward_way += stage.forward;
    slowest_forward = std::max(slowest_forward, stage.forward);
  }
  for (const double transfer : load.transfers) {
    forward_way += transfer;
    slowest_forward = std::max(slowest_forward, transfer);
  }
  const double forwards = forward_way + (micro_batches - 1) * slowest_forward;
  double way = 0, slowest = 0, last = 0;
  for (std::size_t rank = load.stages.size(); rank-- > 0;) {
    const double transfer = rank < load.transfers.size() ? load.transfers[rank] : 0;
    way += load.stages[rank].backward + transfer;
    slowest = std::max({slowest, load.stages[rank].backward, transfer});
    last = std::max(last, forwards + way + (micro_batches - 1) * slowest + load.after[rank]);
  }
  return last;
}

/// Rounds (of as many micro-batches as go round together) that are simulated before and with the ones whose
/// time is taken for all further ones.
constexpr std::int64_t first_rounds = 3;
constexpr std::int64_t simulated_rounds = 5;

/// The order of the micro-batches that are simulated, beside that of the first rounds of them.
struct SimulatedOrder {
  std::shared_ptr<const ScheduleOrder> order;
  double shorter = 0;        ///< micro-batches
  double whole = 0;          ///< the same
  double micro_batches = 0;  ///< that there are, `whole` or more

  /// Of all micro-batches: those beyond the simulated ones each add what the last simulated rounds did, at
  /// least the slowest rank's work.
  double of_all(const PathSeconds& path, double slowest_rank) const {
    if (micro_batches <= whole) return path.whole;
    const double added = (path.whole - path.shorter) / (whole - shorter);
    return path.whole + (micro_batches - whole) * std::max(added, slowest_rank);
  }
};

SimulatedOrder simulated_order(const PipelineShape& shape, const ScheduleOrders& orders) {
  const auto ranks = static_cast<std::int64_t>(shape.ranks);
  const auto micro_batches = static_cast<std::int64_t>(shape.micro_batches);
  const std::int64_t round = shape.micro_batch_group > 0 ? shape.micro_batch_group : ranks;
  const std::int64_t rest = micro_batches % round;
  // Interleaved: the rest is spread over as many rounds, each one micro-batch larger.
  std::int64_t least = first_rounds;
  if (shape.schedule == ScheduleKind::interleaved) least = std::max(least, rest);
  const std::int64_t shorter = least * round + rest;
  const std::int64_t longer = shorter + (simulated_rounds - first_rounds) * round;
  const std::int64_t whole = micro_batches <= shorter + longer ? micro_batches : longer;
  const auto get = [&](std::int64_t beginning) {
    return orders.get(shape.schedule, static_cast<std::int32_t>(ranks),
                      static_cast<std::int32_t>(shape.virtual_stages), static_cast<std::int32_t>(whole),
                      static_cast<std::int32_t>(shape.micro_batch_group),
                      static_cast<std::int32_t>(beginning), static_cast<std::int32_t>(round));
  };
  return {get(whole > shorter ? shorter : 0), static_cast<double>(shorter), static_cast<double>(whole),
          shape.micro_batches};
}

}  // namespace

double Transfers::way(double ranks) const {
  if (after_rank_.empty()) return (ranks - 1) * each_;
  double sum = 0;
  for (std::size_t rank = 0; rank + 1 < after_rank_.size(); ++rank) sum += after_rank_[rank];
  return sum;
}

double Transfers::way(std::int64_t first, std::int64_t boundaries) const {
  if (after_rank_.empty()) return static_cast<double>(boundaries) * each_;
  double sum = 0;
  for (std::int64_t rank = first; rank < first + boundaries; ++rank) sum += after(rank);
  return sum;
}

double Transfers::least() const {
  return after_rank_.empty() ? each_ : *std::min_element(after_rank_.begin(), after_rank_.end());
}

std::vector<double> Transfers::between_stages(const PipelineShape& shape) const {
  const auto ranks = static_cast<std::int64_t>(shape.ranks);
  const auto stages = static_cast<std::int64_t>(shape.ranks * shape.virtual_stages);
  if (after_rank_.empty()) return std::vector<double>(static_cast<std::size_t>(stages - 1), each_);
  const bool there_and_back = goes_there_and_back(shape.schedule);
  std::vector<double> seconds;
  seconds.reserve(static_cast<std::size_t>(stages - 1));
  for (std::int64_t stage = 0; stage + 1 < stages; ++stage) {
    const std::int64_t place = stage % ranks;
    const bool back = there_and_back && stage / ranks % 2 == 1;
    // On the way back stage and rank run against each other; where it turns, both stages are on one rank.
    seconds.push_back(after(back ? std::max<std::int64_t>(ranks - 2 - place, 0) : place));
  }
  return seconds;
}

double slowest_rank_seconds(const PipelineShape& shape, std::span<const StageSeconds> stages) {
  const std::vector<double> totals = rank_totals(shape, stages);
  return *std::max_element(totals.begin(), totals.end());
}

double pipeline_seconds(const PipelineShape& shape, const PipelineLoad& load, const ScheduleOrders& orders) {
  if (shape.ranks <= 1)
    return shape.micro_batches * slowest_rank_seconds(shape, load.stages) + load.after.front();
  if (shape.schedule == ScheduleKind::gpipe) return gpipe_seconds(shape.micro_batches, load);
  const SimulatedOrder simulated = simulated_order(shape, orders);
  return simulated.of_all(simulated.order->seconds(load), slowest_rank_seconds(shape, load.stages));
}

PipelineSeconds pipeline_seconds_without_transfers_too(const PipelineShape& shape, const PipelineLoad& load,
                                                       const ScheduleOrders& orders) {
  if (shape.ranks <= 1 || shape.schedule == ScheduleKind::gpipe) {
    const std::vector<double> none(load.transfers.size());
    return {pipeline_seconds(shape, load, orders),
            pipeline_seconds(shape, {load.stages, none, load.after}, orders)};
  }
  const SimulatedOrder simulated = simulated_order(shape, orders);
  const double slowest = slowest_rank_seconds(shape, load.stages);
  const auto [with, without] = simulated.order->seconds_without_transfers_too(load);
  return {simulated.of_all(with, slowest), simulated.of_all(without, slowest)};
}

double pipeline_lower_bound(const PipelineShape& shape, const PipelineLoad& load) {
  if (shape.schedule == ScheduleKind::gpipe && shape.ranks > 1)
    return gpipe_seconds(shape.micro_batches, load);
  const bool comes_back = ends_with_gradients(shape.schedule);
  const std::vector<double> totals = rank_totals(shape, load.stages);
  double way_there = 0, way_back = 0, largest = 0;
  for (std::size_t rank = 0; rank < totals.size(); ++rank) {
    const double done = way_there + shape.micro_batches * totals[rank];
    largest = std::max({largest, done + load.after[rank], done + way_back});
    if (rank + 1 == totals.size()) break;
    way_there += load.stages[rank].forward + load.transfers[rank];
    if (comes_back) way_back += load.stages[rank].backward + load.transfers[rank];
  }
  return largest;
}

// Of alike ranks the last is the one with the longest ways.
double pipeline_lower_bound(const PipelineShape& shape, std::span<const AlikeRanks> ranks,
                            const Transfers& transfers) {
  const bool comes_back = ends_with_gradients(shape.schedule);
  double way_there = 0, way_back = 0, largest = 0;
  std::int64_t rank = 0;
  for (const AlikeRanks& run : ranks) {
    const double others = static_cast<double>(run.ranks - 1);
    const double between = transfers.way(rank, run.ranks - 1);
    way_there += others * run.first_stage.forward + between;
    if (comes_back) way_back += others * run.first_stage.backward + between;
    const double done = way_there + shape.micro_batches * run.micro_batch;
    largest = std::max({largest, done + run.after, done + way_back});
    rank += run.ranks;
    if (&run == &ranks.back()) break;
    const double to_next = transfers.after(rank - 1);
    way_there += run.first_stage.forward + to_next;
    if (comes_back) way_back += run.first_stage.backward + to_next;
  }
  return largest;
}

double micro_batches_in_flight(const PipelineShape& shape, double rank) {
  if (shape.ranks <= 1 && shape.schedule != ScheduleKind::gpipe) return 1;
  const std::int64_t stages = specs::peak_in_flight(shape.schedule, static_cast<std::int64_t>(shape.ranks),
                                                    static_cast<std::int64_t>(shape.virtual_stages),
                                                    static_cast<std::int64_t>(shape.micro_batches),
                                                    static_cast<std::int64_t>(rank), shape.micro_batch_group);
  return static_cast<double>(stages) / shape.virtual_stages;
}

}  // namespace cost_models
