// A plan of a model that trains in a second, made without the planner.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "specs/plan/plan.h"

namespace e2e {

struct SmallPlan {
  std::int64_t tensor = 1;
  std::int64_t pipeline = 1;
  std::int64_t data = 1;
  std::int64_t zero_stage = 0;
  std::int64_t steps = 6;
  std::int64_t checkpoint_every = 0;
  std::int64_t evaluate_every = 0;
  specs::ScheduleKind schedule = specs::ScheduleKind::one_forward_one_backward;
  std::int64_t virtual_stages = 1;
  specs::Recomputation recomputation = specs::Recomputation::none;
  bool sequence_parallel = false;
  std::int64_t feed_forward_hidden = 64;
  specs::Precision precision = specs::Precision::fp32;
  std::int64_t offload_eighths = 0;  ///< of the optimizer's state, to the host
  bool delayed_update = false;
  bool tied = true;  ///< the embedding is the output layer's table, too
  double initial_loss_scale = 65536;
  double minimum_loss_scale = 1;
  bool diverges = false;  ///< a step so large that the weights overflow
};

specs::Plan make_plan(const SmallPlan& small);

/// The text of plan.json.
std::string plan_text(const SmallPlan& small);

/// Some 100 KB of text that a small model learns quickly.
std::string training_text();

}  // namespace e2e
