#include "cost_models/pipeline.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "specs/schedule/generate.h"
#include "specs/schedule/in_flight.h"

namespace cost_models {
namespace {

using specs::ScheduleKind;

std::int32_t rank_of(const PipelineShape& shape, std::int32_t stage) {
  const auto ranks = static_cast<std::int32_t>(shape.ranks);
  const std::int32_t lap = stage / ranks;
  const std::int32_t place = stage % ranks;
  const bool back = specs::layout_of(shape.schedule) == specs::StageLayout::v_shape && lap % 2 == 1;
  return back ? ranks - 1 - place : place;
}

std::vector<double> rank_totals(const PipelineShape& shape, std::span<const StageSeconds> stages) {
  std::vector<double> totals(static_cast<std::size_t>(shape.ranks));
  for (std::size_t stage = 0; stage < stages.size(); ++stage)
    totals[static_cast<std::size_t>(rank_of(shape, static_cast<std::int32_t>(stage)))] +=
        stages[stage].total();
  return totals;
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
  const bool ends_with_gradients =
      shape.schedule == ScheduleKind::one_forward_one_backward || shape.schedule == ScheduleKind::interleaved;
  const std::vector<double> totals = rank_totals(shape, load.stages);
  double way_there = 0, way_back = 0, largest = 0;
  for (std::size_t rank = 0; rank < totals.size(); ++rank) {
    const double done = way_there + shape.micro_batches * totals[rank];
    largest = std::max({largest, done + load.after[rank], done + way_back});
    if (rank + 1 == totals.size()) break;
    way_there += load.stages[rank].forward + load.transfers[rank];
    if (ends_with_gradients) way_back += load.stages[rank].backward + load.transfers[rank];
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
