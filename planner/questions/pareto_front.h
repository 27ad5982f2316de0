// Which of several answers nothing else beats.
#pragma once

#include <vector>

#include "specs/plan/cost_breakdown.h"

namespace planner {

/// Time, money and memory of an answer: the smaller the better.
struct ParetoPoint {
  double step_seconds = 0;
  double cost_per_step_dollars = 0;
  double peak_device_bytes = 0;
};

ParetoPoint pareto_point(const specs::CostBreakdown& cost);

/// True for each point that no other beats or equals in all three measures, with one of them better.
std::vector<bool> pareto_front(const std::vector<ParetoPoint>& points);

}  // namespace planner
