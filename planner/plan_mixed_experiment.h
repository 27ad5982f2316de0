// The plan of an experiment whose cluster has several kinds of nodes.
#pragma once

#include <atomic>

#include "planner/plan_experiment.h"
#include "specs/language/stack.h"

namespace planner {

PlanOutcome plan_mixed_experiment(const specs::Experiment& experiment, const specs::StackSpec& stack,
                                  const std::atomic<bool>* stop);

}  // namespace planner
