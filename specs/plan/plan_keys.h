// The keys of plan.json, section by section, each named once with its range and meaning: what writes, reads
// and describes the file walks these.
#pragma once

#include <cstdint>
#include <vector>

#include "specs/language/key_visitor.h"
#include "specs/plan/plan.h"

namespace specs {

/// Consecutive stages that differ by a constant step alone. `stage` is the first of them.
struct StageRun {
  std::int64_t count = 1;
  std::int64_t pipeline_rank_step = 0;
  std::int64_t first_device_step = 0;
  std::int64_t unit_step = 0;  ///< of both ends of the range of units
  PipelineStage stage;
  bool operator==(const StageRun&) const = default;

  /// The index-th stage of the run.
  PipelineStage at(std::int64_t index) const;
};

/// Most stages that runs may unfold to.
inline constexpr std::int64_t most_plan_stages = std::int64_t{1} << 20;

/// The stages as few runs, front to back, each as long as it goes; `unfold` gives them back. Requires counts
/// that add up to at most `most_plan_stages`.
std::vector<StageRun> fold(const std::vector<PipelineStage>& stages);
std::vector<PipelineStage> unfold(const std::vector<StageRun>& runs);

/// A placement whose stages are in `runs`; they are the visited ones, those of the placement are not looked
/// at.
void visit_keys(KeyVisitor& visitor, Placement& placement, std::vector<StageRun>& runs);
void visit_keys(KeyVisitor& visitor, CostBreakdown& cost);
void visit_keys(KeyVisitor& visitor, Certificate& certificate);

/// The whole file. A visitor that reads finds the stages unfolded in the plan afterwards, and none where
/// their counts are out of bounds.
void visit_keys(KeyVisitor& visitor, Plan& plan);

}  // namespace specs
