#include "planner/pricing/stage_fits.h"

#include <algorithm>

namespace planner {

using cost_models::StagePricer;
using cost_models::UnitCounts;
using specs::PipelineStage;
using specs::RegularPlacement;

RecomputedLayers::RecomputedLayers(const specs::SearchSpec& search, const RegularPlacement& outer)
    : any_(search.recomputed_layers.empty()), list_(search.recomputed_layers) {
  if (outer.recomputation == specs::Recomputation::none) {
    any_ = false;
    list_ = {0};
  }
  std::sort(list_.begin(), list_.end());
  list_.erase(std::unique(list_.begin(), list_.end()), list_.end());
}

RecomputedLayers RecomputedLayers::of_every_stage(std::int64_t layers) {
  RecomputedLayers numbers;
  numbers.of_every_stage_ = layers;
  return numbers;
}

std::int64_t RecomputedLayers::choices(std::int64_t layers) const {
  if (of_every_stage_ > 0) return 1;
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

ChainPieces::ChainPieces(const specs::ModelSpec& model, bool inside_layers) : inside_layers_(inside_layers) {
  const std::int64_t blocks = specs::block_count(model);
  places_.push_back(0);
  for (std::int64_t layer = 0; layer < blocks; ++layer) {
    if (layer > 0) places_.push_back(specs::attention_unit(layer));
    if (inside_layers) places_.push_back(specs::feed_forward_unit(layer));
  }
  places_.push_back(specs::unit_count(blocks));
  for (std::size_t index = 0; index + 1 < places_.size(); ++index)
    counts_.push_back(
        cost_models::unit_counts(model, {places_[index], places_[index + 1]}, specs::Recomputation::none, 0));
  find_runs();
}

// Cuts inside layers take two pieces in turn.
void ChainPieces::find_runs() {
  const std::size_t turn = inside_layers_ ? 2 : 1;
  std::vector<std::size_t> begins(counts_.size());
  for (std::size_t index = 0, begin = 0; index < counts_.size(); ++index) {
    if (index >= begin + turn && counts_[index] != counts_[index - turn]) begin = index;
    begins[index] = begin;
  }
  run_end_.resize(static_cast<std::size_t>(places_.back()) + 1);
  run_shift_.resize(run_end_.size());
  for (std::size_t index = counts_.size(); index-- > 0;) {
    const auto at = static_cast<std::size_t>(places_[index]);
    const bool ends = index + 1 == counts_.size() || begins[index + 1] != begins[index];
    run_end_[at] = ends ? places_[index + 1] : run_end_[static_cast<std::size_t>(places_[index + 1])];
    run_shift_[at] = places_[index] - places_[begins[index] + (index - begins[index]) % turn];
  }
}

std::vector<StageDevices> same_devices(const StagePricer& pricer, const RegularPlacement& outer,
                                       std::int64_t device_bytes, std::int64_t host_bytes) {
  return std::vector(static_cast<std::size_t>(outer.pipeline),
                     StageDevices{&pricer, device_bytes, host_bytes});
}

StageFits::StageFits(std::vector<StageDevices> devices, const RegularPlacement& outer, std::int64_t blocks,
                     const ChainPieces& pieces, const RecomputedLayers& allowed)
    : devices_(std::move(devices)),
      outer_(outer),
      blocks_(blocks),
      pieces_(pieces),
      allowed_(allowed),
      unlimited_(std::all_of(devices_.begin(), devices_.end(), [](const StageDevices& each) {
        return each.device_bytes == StageDevices::unlimited &&
               each.host_bytes_per_node == StageDevices::unlimited;
      })) {}

void StageFits::recompute_in(std::int64_t stage) {
  recomputing_ = stage;
  fitted_.clear();
}

std::optional<StagePart> StageFits::fitted(std::int64_t stage, std::int64_t first, std::int64_t end) const {
  if (stage != recomputing_) {
    if (unlimited_ && allowed_.allows_none()) return StagePart{first, end, 0};
    const std::int64_t layers = specs::layers_touched({first, end}, blocks_);
    if (const std::optional<std::int64_t> only = allowed_.only(layers))
      return reaches(stage, {first, end, *only}) ? std::optional(StagePart{first, end, *only}) : std::nullopt;
  }
  const StagePart same = pieces_.like({first, end, 0});
  const std::int64_t size = pieces_.places().back() + 1;
  const auto [entry, unknown] = fitted_.try_emplace((stage * size + same.first) * size + same.end, -1);
  if (unknown) {
    const std::int64_t layers = specs::layers_touched({same.first, same.end}, blocks_);
    const std::optional<std::int64_t> recomputed =
        allowed_.fewest(layers, stage == recomputing_, [&](std::int64_t count) {
          return fits(stage, {same.first, same.end, count});
        });
    if (recomputed) entry->second = *recomputed;
  }
  return entry->second < 0 ? std::nullopt : std::optional(StagePart{first, end, entry->second});
}

// What holds more with as many recomputed layers needs more.
bool StageFits::reaches(std::int64_t stage, const StagePart& part) const {
  if (unlimited_) return true;
  const auto size = static_cast<std::size_t>(pieces_.places().back()) + 1;
  if (reaches_.empty()) reaches_.resize(devices_.size() * size);
  const StagePart same = pieces_.like(part);
  Reach& known = reaches_[static_cast<std::size_t>(stage) * size + static_cast<std::size_t>(same.first)];
  const auto end = static_cast<std::int32_t>(same.end);
  if (end <= known.fits) return true;
  if (end >= known.exceeds) return false;
  const bool fit = fits(stage, same);
  (fit ? known.fits : known.exceeds) = end;
  return fit;
}

// Each stage takes what it may: what is left is then the least that can be left.
bool StageFits::any_partition() const {
  const std::vector<std::int64_t>& places = pieces_.places();
  const std::size_t stages = devices_.size();
  if (places.size() < stages + 1) return false;
  std::size_t first = 0;
  for (std::size_t stage = 0; stage < stages; ++stage) {
    const auto number = static_cast<std::int64_t>(stage);
    const std::size_t most = places.size() - stages + stage;
    const std::size_t least = stage + 1 == stages ? most : first + 1;
    if (!fitted(number, places[first], places[least])) return false;
    first = farthest_end(number, first, least, most);
  }
  return true;
}

/// The largest end in [least, most] with which the stage fits, given that it does with `least`.
std::size_t StageFits::farthest_end(std::int64_t stage, std::size_t first, std::size_t least,
                                    std::size_t most) const {
  const std::vector<std::int64_t>& places = pieces_.places();
  const auto fits_to = [&](std::size_t end) { return fitted(stage, places[first], places[end]).has_value(); };
  // Most parts fit as far as the last stages need places.
  if (fits_to(most)) return most;
  while (least + 1 < most) {
    const std::size_t middle = least + (most - least) / 2;
    (fits_to(middle) ? least : most) = middle;
  }
  return least;
}

UnitCounts StageFits::counts_of(const StagePart& part) const {
  scratch_.units = {part.first, part.end};
  set_recomputation(outer_, blocks_, part.recomputed_layers, scratch_);
  return cost_models::unit_counts(devices_.front().pricer->model(), scratch_);
}

bool StageFits::fits(std::int64_t stage, const StagePart& part) const {
  if (unlimited_) return true;
  const StagePricer::Bytes bytes = memory(stage, part);
  const StageDevices& on = devices(stage);
  return bytes.device <= on.device_bytes && bytes.host_per_node <= on.host_bytes_per_node;
}

}  // namespace planner
