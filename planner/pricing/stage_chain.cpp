#include "planner/pricing/stage_chain.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace planner {

using cost_models::StagePricer;
using cost_models::StageSeconds;
using cost_models::UnitCounts;
using specs::RegularPlacement;
using specs::ScheduleKind;

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

StageChain::StageChain(const std::vector<StageDevices>& devices, const RegularPlacement& outer,
                       std::int64_t blocks, const ChainPieces& pieces, const RecomputedLayers& allowed)
    : fits_(devices, outer, blocks, pieces, allowed),
      kinds_(each_once(devices)),
      outer_(outer),
      blocks_(blocks),
      pieces_(pieces),
      places_(pieces.places()),
      allowed_(allowed),
      ranks_(outer.pipeline),
      step_pricer_(slowest_transfers(kinds_)),
      halves_(pieces.inside_layers()),
      alike_(kinds_.size() == 1),
      gathers_(cost_models::reduces_every_micro_batch(cost_models::shard_key(outer))),
      before_(static_cast<std::size_t>(places_.back()) + 1),
      after_(before_.size()) {
  way_.push_back(0);
  for (const double transfer : step_pricer_->transfers().between_stages(step_pricer_->shape()))
    way_.push_back(way_.back() + transfer);
  add_up_places();
  if (allowed.allows_some()) least_repeated_ = least_repeated_layer();
  for (const StageDevices& each : devices)
    kind_of_stage_.push_back(
        static_cast<std::size_t>(std::find(kinds_.begin(), kinds_.end(), each.pricer) - kinds_.begin()));
  ends_.assign(kinds_.size(), std::vector<std::vector<End>>(before_.size()));
  // Updates take time in proportion to a rank's parameters: the longest is no shorter than the mean.
  const UnitCounts whole = counts_of({0, places_.back(), 0});
  double update = std::numeric_limits<double>::infinity();
  for (const StagePricer* kind : kinds_) update = std::min(update, kind->end(whole).update());
  fixed_ = step_pricer_->fixed();
  least_update_ = update / static_cast<double>(ranks_);
  if (alike_) look_at_longest();
  if (alike_ && ranks_ > 1 && outer_.schedule == ScheduleKind::one_forward_one_backward) count_trips();
}

// Some stage holds as many pieces as there are for each, rounded up.
void StageChain::look_at_longest() {
  const auto pieces = static_cast<std::int64_t>(places_.size()) - 1;
  const std::int64_t held = (pieces + ranks_ - 1) / ranks_;
  double update = std::numeric_limits<double>::infinity(), work = update;
  for (std::int64_t first = 0; first + held <= pieces; ++first) {
    const StagePart part{places_[static_cast<std::size_t>(first)],
                         places_[static_cast<std::size_t>(first + held)], 0};
    update = std::min(update, end_of(0, part).update);
    work = std::min(work, work_of(0, part));
  }
  least_update_ = std::max(least_update_, update);
  constexpr double rounding = 1e-12;
  if (outer_.schedule == ScheduleKind::one_forward_one_backward) long_work_ = work * (1 - rounding);
}

void StageChain::add_up_places() {
  const auto at = [](std::int64_t place) { return static_cast<std::size_t>(place); };
  if (!alike_) {
    for (const std::int64_t place : places_) {
      before_[at(place)] = least_seconds_of(counts_of({0, place, 0}));
      after_[at(place)] = least_seconds_of(counts_of({place, places_.back(), 0}));
    }
    return;
  }
  // Most pieces between neighbouring places are alike.
  const std::size_t turn = halves_ ? 2 : 1;
  const std::vector<UnitCounts>& counts = pieces_.counts();
  std::vector<StageSeconds> pieces;
  for (std::size_t index = 0; index < counts.size(); ++index)
    pieces.push_back(index >= turn && counts[index] == counts[index - turn]
                         ? pieces[index - turn]
                         : seconds_of(*kinds_.front(), counts[index]));
  const auto sum = [](const StageSeconds& a, const StageSeconds& b) {
    return StageSeconds{a.forward + b.forward, a.backward + b.backward, 0};
  };
  for (std::size_t index = 0; index < pieces.size(); ++index)
    before_[at(places_[index + 1])] = sum(before_[at(places_[index])], pieces[index]);
  for (std::size_t index = pieces.size(); index-- > 0;)
    after_[at(places_[index])] = sum(pieces[index], after_[at(places_[index + 1])]);
}

double StageChain::path(std::int64_t stage, const StagePart& part) const {
  const double repeated = surely_repeated(part);
  const double work = work_of(stage, part) + repeated;
  double seconds =
      std::max(pipeline_path(stage, part, work, repeated), whole_trips_path(stage, part, work, repeated));
  if (gathers_)
    seconds = std::max(seconds, step_pricer_->shape().micro_batches *
                                    pricer(stage).stage(counts_of({part.first, part.end, 0})).total());
  return at_end(stage, part) + seconds;
}

// Up from a stage its last gradient passes all before it.
double StageChain::back(std::int64_t stage, std::int64_t first) const {
  if (zero_bubble()) return 0;
  return before_[static_cast<std::size_t>(first)].backward + way(stage);
}

const StageChain::End& StageChain::end_of(std::int64_t stage, const StagePart& part) const {
  const StagePart same = pieces_.like(part);
  std::vector<End>& of_first =
      ends_[kind_of_stage_[static_cast<std::size_t>(stage)]][static_cast<std::size_t>(same.first)];
  if (of_first.empty()) of_first.resize(before_.size());
  End& end = of_first[static_cast<std::size_t>(same.end)];
  if (end.gradient_reduction < 0) {
    const cost_models::StepEndSeconds seconds = pricer(stage).end(counts_of({same.first, same.end, 0}));
    end = {seconds.gradient_reduction, seconds.update()};
  }
  return end;
}

// A part that starts later may begin with a whole layer where the longer one began with half of one: that
// bounds never grow with it, only layers that are surely whole count, each as the quickest to repeat.
double StageChain::surely_repeated(const StagePart& part) const {
  const double halves = halves_ ? 2 : 0;
  return std::max(0.0, static_cast<double>(part.recomputed_layers) - halves) * least_repeated_;
}

namespace {

/// What the first and the last trip of 1F1B that pass a stage take longer where, in place of the way from
/// there to the last stage and back (`below`), the stage itself does the other forwards that come before its
/// first backward, and the other backwards that follow its last forward.
double longer_by_itself(double others, double forward, double backward, double below) {
  return std::max(0.0, others * forward - below) + std::max(0.0, others * backward - below);
}

}  // namespace

double StageChain::longer_in_part(std::int64_t stage, const StagePart& part, double repeated) const {
  const StageSeconds& before = before_[static_cast<std::size_t>(part.first)];
  const StageSeconds& beyond = before_[static_cast<std::size_t>(part.end)];
  const double below = after_[static_cast<std::size_t>(part.end)].total() + 2 * way_on(stage);
  return longer_by_itself(static_cast<double>(ranks_ - stage - 1), beyond.forward - before.forward,
                          beyond.backward - before.backward + repeated, below);
}

// 1F1B on two stages in turn, i and l = i + 1: F(k) on i goes down, is followed on l by the B of w - 1
// micro-batches before (w = p - l), which comes back up and is followed on i by F(k + 2): 2 micro-batches
// further. Such turns may begin once w micro-batches are on their way: after a round trip from F(0) on l to
// the last rank and back to B(0), which F(w) follows, and another such trip at the end, from F(m - 1) to B(m
// - 1); or after w forwards on i, with what is left of the backwards at the end. Where the price of many
// micro-batches is taken from fewer (pipeline.h), no more than these count, and the slower stage's work for
// the others.
double StageChain::pair_path(std::int64_t stage, const StagePart& part, const StagePart& next) const {
  if (outer_.schedule != ScheduleKind::one_forward_one_backward || !alike_) return 0;
  const double all = step_pricer_->shape().micro_batches;
  const double simulated = simulated_micro_batches();
  const double ranks = static_cast<double>(ranks_);
  const auto at = [](std::int64_t place) { return static_cast<std::size_t>(place); };
  const double transfer = way(stage + 1) - way(stage);
  const StageSeconds& before = before_[at(part.first)];
  const StageSeconds& between = before_[at(part.end)];
  const double forward = between.forward - before.forward;
  const double backward = between.backward - before.backward;
  const double repeated = surely_repeated(part);
  const double work = work_of(stage, part) + repeated;
  const double next_work = work_of(stage + 1, next) + surely_repeated(next);
  const double turn = work + next_work + 2 * transfer;
  const double slower = std::max(work, next_work);
  const double place = static_cast<double>(stage);
  double seconds = 0;
  if (const double turns = std::floor((simulated + 1 - (ranks - place)) / 2); turns >= 1)
    seconds = before.forward + way(stage) + (simulated - 2 * turns) * forward +
              (simulated + 1 - 2 * turns) * (work - forward) + turns * turn - (backward + repeated) -
              transfer;
  const double below = after_[at(next.end)].total() + 2 * way_on(stage + 1);
  const StageSeconds& beyond = before_[at(next.end)];
  const double longer = longer_by_itself(ranks - place - 2, beyond.forward - between.forward,
                                         beyond.backward - between.backward + surely_repeated(next), below);
  const double left = simulated - 1 - (ranks - place - 1);
  if (const double turns = std::floor(left / 2); turns >= 1) {
    const double trip = next_work + below;
    seconds = std::max(seconds, between.forward + way(stage + 1) + 2 * trip + longer + turns * turn +
                                    (left - 2 * turns) * slower);
  }
  if (trips_ > 0) {
    const double turns = std::floor(left_ / 2);
    seconds = std::max(seconds, trips_up_to(stage + 1, next.first, repeated + surely_repeated(next)) +
                                    longer + turns * turn + (left_ - 2 * turns) * slower);
  }
  if (seconds <= 0) return 0;
  return std::max(at_end(stage, part), at_end(stage + 1, next)) + seconds + (all - simulated) * slower;
}

// As many turns as in pairs, of as many stages as there are in the run and one of fewer at the end; or in a
// shorter run that ends there, too.
double StageChain::run_path(std::int64_t stage, const StagePart& part, std::int64_t length) const {
  const double repeated = surely_repeated(part);
  const StageSeconds& before = before_[static_cast<std::size_t>(part.first)];
  const double below = after_[static_cast<std::size_t>(part.end)].total() + 2 * way_on(stage);
  const double longer = longer_in_part(stage, part, repeated);
  double seconds = 0;
  if (const double turns = run_seconds(stage, length); turns > 0)
    seconds = before.forward + way(stage) + 2 * (work_of(stage, part) + repeated + below) + longer + turns;
  if (trips_ > 0)
    seconds = std::max(seconds,
                       trips_up_to(stage, part.first, repeated) + longer + whole_run_seconds(stage, length));
  return seconds > 0 ? at_end(stage, part) + seconds : 0;
}

namespace {

double& known_of(std::vector<double>& table, std::int64_t ranks, std::int64_t stage, std::int64_t length) {
  if (table.empty()) table.assign(static_cast<std::size_t>(ranks * (ranks + 1)), -1);
  return table[static_cast<std::size_t>(stage * (ranks + 1) + length)];
}

}  // namespace

/// So many micro-batches in turns of the last `length` stages of a run that ends here.
double StageChain::turns_in_run(std::int64_t stage, std::int64_t length, std::int64_t micro_batches) const {
  const auto turn = [&](std::int64_t stages) {
    return stages == 0
               ? 0
               : static_cast<double>(stages) * long_work_ + 2 * (way(stage) - way(stage - stages + 1));
  };
  return static_cast<double>(micro_batches / length) * turn(length) + turn(micro_batches % length);
}

/// The first trip may start at any stage of the run, and turns may be of any stages at its end.
double StageChain::run_seconds(std::int64_t stage, std::int64_t length) const {
  double& known = known_of(run_seconds_, ranks_, stage, length);
  if (known >= 0) return known;
  if (length < 2) return known = 0;
  const double simulated = simulated_micro_batches();
  const double beyond = (step_pricer_->shape().micro_batches - simulated) * long_work_;
  const auto seconds = [&](std::int64_t trip, std::int64_t turn) {
    const std::int64_t first = stage - trip + 1;
    const auto left = static_cast<std::int64_t>(simulated) - 1 - (ranks_ - first);
    if (left < 0) return 0.0;
    return static_cast<double>(trip - 1) * long_work_ + 2 * (way(stage) - way(first)) +
           turns_in_run(stage, turn, left) + beyond;
  };
  double largest = run_seconds(stage, length - 1);
  for (std::int64_t shorter = 1; shorter <= length; ++shorter)
    largest = std::max({largest, seconds(length, shorter), seconds(shorter, length)});
  return known = largest;
}

/// The same for what whole trips leave.
double StageChain::whole_run_seconds(std::int64_t stage, std::int64_t length) const {
  double& known = known_of(whole_run_seconds_, ranks_, stage, length);
  if (known >= 0) return known;
  if (length < 1) return known = 0;
  const double turns = turns_in_run(stage, length, static_cast<std::int64_t>(left_));
  return known = std::max(turns + beyond_ * long_work_, whole_run_seconds(stage, length - 1));
}

// pipeline.h takes the price of many micro-batches from that of fewer.
double StageChain::simulated_micro_batches() const {
  const double all = step_pricer_->shape().micro_batches;
  const double ranks = static_cast<double>(ranks_);
  const double rest = static_cast<double>(outer_.accumulation % ranks_);
  return all <= 8 * ranks + 2 * rest ? all : 5 * ranks + rest;
}

/// Nothing recomputed.
double StageChain::work_of(std::int64_t stage, const StagePart& part) const {
  if (!alike_) {
    const auto size = static_cast<std::int64_t>(before_.size());
    const auto [entry, unknown] = works_.try_emplace((stage * size + part.first) * size + part.end);
    if (unknown) entry->second = seconds_of(pricer(stage), counts_of({part.first, part.end, 0})).total();
    return entry->second;
  }
  return before_[static_cast<std::size_t>(part.end)].total() -
         before_[static_cast<std::size_t>(part.first)].total();
}

double StageChain::price(std::span<const StagePart> parts) const {
  std::vector<StageSeconds> stages;
  std::vector<cost_models::StepEndSeconds> ends;
  for (std::size_t stage = 0; stage < parts.size(); ++stage) {
    const UnitCounts counts = counts_of(parts[stage]);
    const StagePricer& priced = pricer(static_cast<std::int64_t>(stage));
    stages.push_back(priced.stage(counts));
    ends.push_back(priced.end(counts));
  }
  return step_pricer_->step(stages, ends);
}

/// A sum over units, so that bounds may add up what stages hold.
StageSeconds StageChain::seconds_of(const StagePricer& kind, const UnitCounts& counts) const {
  return gathers_ ? kind.units(counts) : kind.stage(counts);
}

StageSeconds StageChain::least_seconds_of(const UnitCounts& counts) const {
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
  UnitCounts last;
  for (std::int64_t layer = 0; layer < blocks_; ++layer) {
    const std::int64_t first = specs::attention_unit(layer);
    const UnitCounts repeated = counts_of({first, first + 2, 1});
    if (layer > 0 && repeated == last) continue;
    last = repeated;
    const UnitCounts once = counts_of({first, first + 2, 0});
    for (const StagePricer* kind : kinds_)
      least = std::min(least, seconds_of(*kind, repeated).total() - seconds_of(*kind, once).total());
  }
  return std::max(0.0, least);
}

std::int64_t StageChain::worthwhile_prices(Effort effort) const {
  if (effort == Effort::bound_alone) return 1;
  // A price simulates that many actions (cost_models/pipeline.h); long pipelines get fewer prices.
  const bool whole = effort == Effort::whole;
  const double ranks = static_cast<double>(ranks_);
  const double actions = 2 * ranks * std::min(step_pricer_->shape().micro_batches, 5 * ranks);
  return static_cast<std::int64_t>(whole ? std::clamp(4e6 / actions, 16.0, 300.0)
                                         : std::clamp(1e5 / actions, 4.0, 64.0));
}

bool StageChain::zero_bubble() const {
  return outer_.schedule == ScheduleKind::zero_bubble_h1 || outer_.schedule == ScheduleKind::zero_bubble_h2;
}

// Until the stage's last backward pass ends, each the length of a path through the schedule. With w = p − i
// micro-batches in flight on stage i of 1F1B, B(k) comes before F(k + w) there: a path may take the round
// trip from F(k) down to the last stage and back to B(k), R seconds, x times, advancing w micro-batches each
// time, and stay on the rank for the rest. At least one round trip is taken, since the rank's order leads
// from F(k) to B(k − w + 1). It is largest with x = 1 or with as many as there are; with x = 1 the first and
// the last trip may both be longer by the stage itself.
double StageChain::pipeline_path(std::int64_t stage, const StagePart& part, double work,
                                 double repeated) const {
  const double micro_batches = step_pricer_->shape().micro_batches;
  if (ranks_ == 1) return micro_batches * work;
  const double there = before_[static_cast<std::size_t>(part.first)].forward + way(stage);
  if (zero_bubble()) return there + micro_batches * work;
  const double in_flight = static_cast<double>(ranks_ - stage);
  const double round_trip = work + after_[static_cast<std::size_t>(part.end)].total() + 2 * way_on(stage);
  if (outer_.schedule == ScheduleKind::gpipe)
    return there + round_trip + (micro_batches - 1) * std::max(work, 2 * step_pricer_->transfers().least());
  const double longer = alike_ ? longer_in_part(stage, part, repeated) : 0;
  const double most_trips = std::floor((micro_batches - 1) / in_flight);
  double largest = std::max(there + round_trip, there + micro_batches * work);
  if (most_trips >= 1)
    largest = std::max(largest, there + 2 * round_trip + longer + (micro_batches - 1 - in_flight) * work);
  if (most_trips > 1)
    largest = std::max(
        largest, there + (most_trips + 1) * round_trip + (micro_batches - 1 - most_trips * in_flight) * work);
  return largest;
}

// 1F1B again: as many whole trips from stage 0 as there are, each of which advances as many micro-batches as
// there are stages, and the micro-batches that are left in shorter turns: from stage 0 down to this one, or
// from here to the last, d stages and d micro-batches each, and on this stage alone. F(k) on a stage that
// keeps w micro-batches comes before B(k - w + 1) there, and that, d - 1 stages further up, before F(k + d).
// With equal stages this is the longest path. It ends at stage 0, and the first and the last trip come by
// here.
void StageChain::count_trips() {
  const double simulated = simulated_micro_batches();
  const double ranks = static_cast<double>(ranks_);
  trips_ = std::floor((simulated - 1) / ranks);
  if (trips_ < 1) return;
  constexpr double rounding = 1e-12;
  trips_seconds_ = (trips_ + 1) * (before_.back().total() + 2 * way_.back()) * (1 - rounding);
  left_ = simulated - 1 - trips_ * ranks;
  beyond_ = step_pricer_->shape().micro_batches - simulated;
  for (double stage = 0; stage < ranks; ++stage) {
    const double down = std::floor(left_ / (stage + 1)), on = std::floor(left_ / (ranks - stage));
    turns_.push_back({down, left_ - down * (stage + 1), on, left_ - on * (ranks - stage)});
  }
}

double StageChain::whole_trips_path(std::int64_t stage, const StagePart& part, double work,
                                    double repeated) const {
  if (trips_ < 1) return 0;
  const StageTurns& turns = turns_[static_cast<std::size_t>(stage)];
  const auto end = static_cast<std::size_t>(part.end);
  const double down = before_[end].total() + 2 * way(stage) + repeated;
  const double below = after_[end].total() + 2 * way_on(stage);
  const double on = work + below;
  return trips_up_to(stage, part.first, repeated) + longer_in_part(stage, part, repeated) +
         std::max(turns.down * down + turns.after_down * work, turns.on * on + turns.after_on * work) +
         beyond_ * work;
}

namespace {

bool recomputes_nowhere(const Partition& partition) {
  return std::all_of(partition.parts.begin(), partition.parts.end(),
                     [](const StagePart& part) { return part.recomputed_layers == 0; });
}

}  // namespace

std::optional<Partition> best_cut(StageChain& chain, bool recompute_somewhere, Effort effort, double enough) {
  const std::int64_t most_prices = chain.worthwhile_prices(effort);
  std::optional<Partition> best = best_partition(chain, most_prices, enough, effort);
  if (!recompute_somewhere || !best || !recomputes_nowhere(*best)) return best;
  // Every choice that is left recomputes in some stage: the best over the stage that does.
  best.reset();
  for (std::int64_t stage = 0; stage < chain.stages(); ++stage) {
    chain.recompute_in(stage);
    const std::optional<Partition> found = best_partition(chain, most_prices, enough, effort);
    if (!found) continue;
    const double bound = best ? std::min(best->lower_bound, found->lower_bound) : found->lower_bound;
    if (!best || found->price < best->price) best = found;
    best->lower_bound = bound;
  }
  return best;
}

}  // namespace planner
