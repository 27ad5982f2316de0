#include "planner/pricing/stage_chain.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace planner {

using cost_models::StagePricer;
using cost_models::StageSeconds;
using cost_models::UnitCounts;
using specs::PipelineStage;
using specs::RegularPlacement;
using specs::ScheduleKind;

RecomputedLayers::RecomputedLayers(const specs::SearchSpec& search, const RegularPlacement& outer)
    : any_(search.recomputed_layers.empty()), list_(search.recomputed_layers) {
  if (outer.recomputation == specs::Recomputation::none) {
    any_ = false;
    list_ = {0};
  }
  std::sort(list_.begin(), list_.end());
  list_.erase(std::unique(list_.begin(), list_.end()), list_.end());
}

std::int64_t RecomputedLayers::choices(std::int64_t layers) const {
  return any_ ? layers + 1 : std::upper_bound(list_.begin(), list_.end(), layers) - list_.begin();
}

void set_recomputation(const RegularPlacement& outer, std::int64_t blocks, std::int64_t recomputed,
                       PipelineStage& stage) {
  stage.recomputation.clear();
  if (recomputed == 0) return;
  const std::int64_t touched = specs::layers_touched(stage.units, blocks);
  stage.recomputation.push_back(
      {.layers = recomputed, .mode = outer.recomputation, .modules = outer.recomputed_modules});
  if (recomputed < touched)
    stage.recomputation.push_back({.layers = touched - recomputed, .mode = specs::Recomputation::none});
}

std::vector<std::int64_t> places_for_cuts(std::int64_t blocks, bool inside_layers) {
  std::vector<std::int64_t> places{0};
  for (std::int64_t layer = 0; layer < blocks; ++layer) {
    if (layer > 0) places.push_back(specs::attention_unit(layer));
    if (inside_layers) places.push_back(specs::feed_forward_unit(layer));
  }
  places.push_back(specs::unit_count(blocks));
  return places;
}

namespace {

std::vector<const StagePricer*> each_once(const std::vector<StageDevices>& devices) {
  std::vector<const StagePricer*> kinds;
  for (const StageDevices& each : devices)
    if (std::find(kinds.begin(), kinds.end(), each.pricer) == kinds.end()) kinds.push_back(each.pricer);
  return kinds;
}

const StagePricer* slowest_transfers(const std::vector<const StagePricer*>& kinds) {
  return *std::max_element(kinds.begin(), kinds.end(), [](const StagePricer* a, const StagePricer* b) {
    return std::pair(a->way(), a->fixed()) < std::pair(b->way(), b->fixed());
  });
}

}  // namespace

StageChain::StageChain(std::vector<StageDevices> devices, const RegularPlacement& outer, std::int64_t blocks,
                       std::vector<std::int64_t> places, const RecomputedLayers& allowed)
    : devices_(std::move(devices)),
      kinds_(each_once(devices_)),
      outer_(outer),
      blocks_(blocks),
      places_(std::move(places)),
      allowed_(allowed),
      ranks_(outer.pipeline),
      step_pricer_(slowest_transfers(kinds_)),
      halves_(std::any_of(places_.begin() + 1, places_.end() - 1,
                          [](std::int64_t place) { return place % 2 == 0; })),
      gathers_(outer.zero.stage >= 2),
      before_(static_cast<std::size_t>(places_.back()) + 1),
      after_(before_.size()) {
  for (const std::int64_t place : places_) {
    before_[static_cast<std::size_t>(place)] = least_seconds_of({0, place, 0});
    after_[static_cast<std::size_t>(place)] = least_seconds_of({place, places_.back(), 0});
  }
  if (allowed.choices(blocks) > 1) least_repeated_ = least_repeated_layer();
  // Updates take time in proportion to a rank's parameters: the longest is no shorter than the mean.
  const UnitCounts whole = counts_of({0, places_.back(), 0});
  double update = std::numeric_limits<double>::infinity();
  for (const StagePricer* kind : kinds_) update = std::min(update, kind->end(whole).update());
  everywhere_ = step_pricer_->fixed() + update / static_cast<double>(ranks_);
}

void StageChain::recompute_in(std::int64_t stage) {
  recomputing_ = stage;
  fitted_.clear();
  bounds_.clear();
}

std::optional<StagePart> StageChain::fitted(std::int64_t stage, std::int64_t first, std::int64_t end) const {
  const auto size = static_cast<std::int64_t>(before_.size());
  const auto [entry, unknown] = fitted_.try_emplace((stage * size + first) * size + end);
  if (unknown) {
    const std::int64_t layers = specs::layers_touched({first, end}, blocks_);
    const std::optional<std::int64_t> recomputed =
        allowed_.fewest(layers, stage == recomputing_, [&](std::int64_t count) {
          return fits(stage, {first, end, count});
        });
    if (recomputed) entry->second = StagePart{first, end, *recomputed};
  }
  return entry->second;
}

double StageChain::bound(std::int64_t stage, const StagePart& part) const {
  const auto size = static_cast<std::int64_t>(before_.size());
  const auto [entry, unknown] = bounds_.try_emplace((stage * size + part.first) * size + part.end);
  if (!unknown) return entry->second;
  // A part that starts later may begin with a whole layer where the longer one began with half of one: that
  // the bound never grows with it, only layers that are surely whole count, each as the quickest to repeat.
  const double halves = halves_ ? 2 : 0;
  const double repeated =
      std::max(0.0, static_cast<double>(part.recomputed_layers) - halves) * least_repeated_;
  const UnitCounts counts = counts_of({part.first, part.end, 0});
  const double work = seconds_of(pricer(stage), counts).total() + repeated;
  double seconds = pipeline_bound(static_cast<double>(stage), part, work);
  if (gathers_)
    seconds = std::max(seconds, step_pricer_->shape().micro_batches * pricer(stage).stage(counts).total());
  return entry->second = everywhere_ + seconds;
}

double StageChain::added_by_first(std::int64_t end) const {
  // The last backward pass of the step is stage 0's; under the zero-bubble schedules it may end before
  // others.
  if (zero_bubble()) return 0;
  return pricer(0).end(counts_of({0, end, 0})).gradient_reduction;
}

double StageChain::price(std::span<const StagePart> parts) const {
  std::vector<StageSeconds> stages;
  std::vector<cost_models::StepEndSeconds> ends;
  for (std::size_t stage = 0; stage < parts.size(); ++stage) {
    const UnitCounts counts = counts_of(parts[stage]);
    stages.push_back(devices_[stage].pricer->stage(counts));
    ends.push_back(devices_[stage].pricer->end(counts));
  }
  return step_pricer_->step(stages, ends);
}

StagePricer::Bytes StageChain::memory(std::int64_t stage, const StagePart& part) const {
  return pricer(stage).memory(stage, counts_of(part));
}

UnitCounts StageChain::counts_of(const StagePart& part) const {
  scratch_.units = {part.first, part.end};
  set_recomputation(outer_, blocks_, part.recomputed_layers, scratch_);
  return cost_models::unit_counts(step_pricer_->model(), scratch_);
}

// A sum over units, since bounds add up what the other stages hold.
StageSeconds StageChain::seconds_of(const StagePricer& kind, const UnitCounts& counts) const {
  return gathers_ ? kind.units(counts) : kind.stage(counts);
}

StageSeconds StageChain::least_seconds_of(const StagePart& part) const {
  const UnitCounts counts = counts_of(part);
  StageSeconds least = seconds_of(*kinds_.front(), counts);
  for (const StagePricer* kind : kinds_) {
    const StageSeconds seconds = seconds_of(*kind, counts);
    least.forward = std::min(least.forward, seconds.forward);
    least.backward = std::min(least.backward, seconds.backward);
  }
  return least;
}

double StageChain::least_repeated_layer() const {
  double least = std::numeric_limits<double>::infinity();
  UnitCounts looked_at;  // most layers are like the one before
  for (std::int64_t layer = 0; layer < blocks_; ++layer) {
    const std::int64_t first = specs::attention_unit(layer);
    const UnitCounts repeated = counts_of({first, first + 2, 1});
    if (layer > 0 && repeated == looked_at) continue;
    looked_at = repeated;
    const UnitCounts once = counts_of({first, first + 2, 0});
    for (const StagePricer* kind : kinds_)
      least = std::min(least, seconds_of(*kind, repeated).total() - seconds_of(*kind, once).total());
  }
  return least;
}

bool StageChain::fits(std::int64_t stage, const StagePart& part) const {
  const StagePricer::Bytes bytes = memory(stage, part);
  const StageDevices& devices = devices_[static_cast<std::size_t>(stage)];
  return bytes.device <= devices.device_bytes && bytes.host_per_node <= devices.host_bytes_per_node;
}

bool StageChain::zero_bubble() const {
  return outer_.schedule == ScheduleKind::zero_bubble_h1 || outer_.schedule == ScheduleKind::zero_bubble_h2;
}

// Lower bounds of the critical path, each the length of a path through the schedule. With w = p − i
// micro-batches in flight on stage i of 1F1B, B(k) comes before F(k + w) there: a path may take the round
// trip from F(k) down to the last stage and back to B(k), R seconds, x times, advancing w micro-batches each
// time, and stay on the rank for the rest. At least one round trip is taken, since the rank's order leads
// from F(k) to B(k − w + 1). It is largest with x = 1 or with as many as there are.
double StageChain::pipeline_bound(double stage, const StagePart& part, double work) const {
  const double micro_batches = step_pricer_->shape().micro_batches;
  if (ranks_ == 1) return micro_batches * work;
  const double transfer = step_pricer_->transfers().least();
  const StageSeconds& before = before_[static_cast<std::size_t>(part.first)];
  const double after = after_[static_cast<std::size_t>(part.end)].total();
  const double ranks = static_cast<double>(ranks_);
  if (zero_bubble()) return before.forward + stage * transfer + micro_batches * work;
  const double once = before.total() + work + after + 2 * (ranks - 1) * transfer;
  if (outer_.schedule == ScheduleKind::gpipe)
    return once + (micro_batches - 1) * std::max(work, 2 * transfer);
  const double in_flight = ranks - stage;
  const double round_trip = work + after + 2 * (ranks - 1 - stage) * transfer;
  const double most_trips = std::floor((micro_batches - 1) / in_flight);
  double largest = std::max(once, before.total() + 2 * stage * transfer + micro_batches * work);
  for (const double trips : {1.0, most_trips})
    if (trips >= 1 && trips <= most_trips)
      largest = std::max(largest, once + trips * round_trip + (micro_batches - 1 - trips * in_flight) * work);
  return largest;
}

namespace {

bool recomputes_nowhere(const Partition& partition) {
  return std::all_of(partition.parts.begin(), partition.parts.end(),
                     [](const StagePart& part) { return part.recomputed_layers == 0; });
}

}  // namespace

std::optional<Partition> best_cut(StageChain& chain, bool recompute_somewhere) {
  std::optional<Partition> best = best_partition(chain, most_partitions_visited);
  if (!recompute_somewhere || !best || !recomputes_nowhere(*best)) return best;
  // Every choice that is left recomputes in some stage: the best over the stage that does.
  best.reset();
  for (std::int64_t stage = 0; stage < chain.stages(); ++stage) {
    chain.recompute_in(stage);
    const std::optional<Partition> found = best_partition(chain, most_partitions_visited);
    if (!found) continue;
    const double bound = best ? std::min(best->lower_bound, found->lower_bound) : found->lower_bound;
    if (!best || found->price < best->price) best = found;
    best->lower_bound = bound;
  }
  return best;
}

}  // namespace planner
