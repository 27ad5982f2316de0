#include "tests/numerics/expected_work.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "specs/plan/rank_mapping.h"

namespace runtime::numerics {

namespace {

using specs::Recomputation;

/// By unit: forward passes of the whole, and of the core of an attention.
using Passes = std::map<std::int64_t, std::pair<std::int64_t, std::int64_t>>;

void add_stage(const TrainingCase& training, const specs::PipelineStage& stage, Passes& passes) {
  const std::int64_t times = training.steps * training.micro_batches;
  std::int64_t touched = 0;
  for (std::int64_t layer = 0; layer < training.layers(); ++layer) {
    const bool attends = stage.units.contains(specs::attention_unit(layer));
    const bool feeds = stage.units.contains(specs::feed_forward_unit(layer));
    if (!attends && !feeds) continue;
    const Recomputation mode = specs::recomputation_of(stage, touched++);
    const std::int64_t whole = mode == Recomputation::full ? 2 : 1;
    const bool core_again =
        mode == Recomputation::selective && training.attention == specs::AttentionImplementation::unfused;
    if (attends) passes[specs::attention_unit(layer)] = {whole * times, (core_again ? 2 : whole) * times};
    if (feeds) passes[specs::feed_forward_unit(layer)] = {whole * times, 0};
  }
}

Passes expected_passes(const TrainingCase& training, std::int64_t rank) {
  const specs::Placement placement = placement_of(training);
  Passes passes;
  for (const specs::PipelineStage& stage : placement.stages)
    if (stage.pipeline_rank == *specs::pipeline_rank_of(placement, rank)) add_stage(training, stage, passes);
  return passes;
}

}  // namespace

std::vector<std::string> work_defects(const TrainingCase& training, std::int64_t rank, const RankWork& work) {
  std::vector<std::string> defects;
  Passes counted;
  for (const UnitPasses& unit : work.passes) counted[unit.unit] = {unit.whole, unit.attention_core};
  const Passes expected = expected_passes(training, rank);
  if (counted.size() != expected.size())
    defects.push_back(
        fmt::format("rank {} runs {} halves of layers, not {}", rank, counted.size(), expected.size()));
  for (const auto& [unit, passes] : expected)
    if (counted[unit] != passes)
      defects.push_back(fmt::format("rank {} runs unit {} {} times and its core {} times, not {} and {}",
                                    rank, unit, counted[unit].first, counted[unit].second, passes.first,
                                    passes.second));
  const auto expect_peak = [&](std::int64_t peak, std::int64_t allowed, const char* what) {
    if (peak != allowed)
      defects.push_back(fmt::format("rank {} holds {} {} whole at most, not {}", rank, peak, what, allowed));
  };
  const std::int64_t travelling = training.overlap_reduction ? 1 : 0;
  const std::int64_t filled = training.tied ? 2 : 1;
  expect_peak(work.peak_whole_buckets,
              training.zero.stage >= 2 ? std::min(work.buckets, travelling + filled) : 0, "buckets");
  const std::int64_t units = training.layers() + (training.tied ? 1 : 2);
  expect_peak(work.peak_gathered_units,
              training.zero.stage == 3 ? std::min(units, training.buckets.prefetch_units + 1) : 0, "units");
  return defects;
}

}  // namespace runtime::numerics
