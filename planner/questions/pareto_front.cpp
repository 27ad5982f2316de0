#include "planner/questions/pareto_front.h"

#include <algorithm>

namespace planner {
namespace {

/// −1, 0 or 1; a cost that is not known is neither more nor less than another.
int compare_costs(const ParetoPoint& a, const ParetoPoint& b) {
  if (a.cost_per_step_dollars <= 0 || b.cost_per_step_dollars <= 0) return 0;
  return a.cost_per_step_dollars < b.cost_per_step_dollars
             ? -1
             : a.cost_per_step_dollars > b.cost_per_step_dollars;
}

bool dominates(const ParetoPoint& a, const ParetoPoint& b) {
  const int cost = compare_costs(a, b);
  const bool no_worse =
      a.step_seconds <= b.step_seconds && cost <= 0 && a.peak_device_bytes <= b.peak_device_bytes;
  const bool better =
      a.step_seconds < b.step_seconds || cost < 0 || a.peak_device_bytes < b.peak_device_bytes;
  return no_worse && better;
}

}  // namespace

ParetoPoint pareto_point(const specs::CostBreakdown& cost) {
  return {cost.step_seconds, cost.cost_per_step_dollars, static_cast<double>(cost.peak_device_bytes)};
}

std::vector<bool> pareto_front(const std::vector<ParetoPoint>& points) {
  std::vector<bool> front;
  for (const ParetoPoint& point : points)
    front.push_back(std::none_of(points.begin(), points.end(),
                                 [&](const ParetoPoint& other) { return dominates(other, point); }));
  return front;
}

}  // namespace planner
