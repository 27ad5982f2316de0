// `dsplan report`: a plan as one page that needs no network: timeline, time, memory, the Pareto front, the
// certificate, advice, and the tables behind them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/questions/pareto_front.h"
#include "planner/simulate/placement_simulation.h"
#include "specs/plan/plan.h"

namespace planner {

/// An answer beside the plan.
struct PagePoint {
  std::string label;  ///< short
  std::string words;  ///< what it is
  ParetoPoint measures;
};

struct PageContent {
  const specs::Plan& plan;
  StepSimulation step;
  std::int64_t usable_device_bytes = 0;
  std::vector<PagePoint> sweep;  ///< what the front is of; empty: the plan and its runners-up
};

/// The HTML text.
std::string report_page(const PageContent& content);

}  // namespace planner
