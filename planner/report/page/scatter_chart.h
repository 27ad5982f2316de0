// Points in the plane as SVG: what each answer takes of two measures, and which of them nothing else beats.
#pragma once

#include <string>
#include <vector>

#include "planner/wording/quantity.h"

namespace planner {

struct ScatterPoint {
  std::string label;  ///< short, drawn beside the point where there is room
  std::string words;  ///< shown when pointed at
  double x = 0;
  double y = 0;
  bool on_front = false;
  bool chosen = false;
};

struct ScatterAxis {
  std::string title;
  Quantity quantity = Quantity::text;
};

/// Empty with fewer than two points.
std::string scatter_chart(const std::vector<ScatterPoint>& points, const ScatterAxis& x,
                          const ScatterAxis& y);

/// Round values of an axis from `low` to `high`, between two and seven of them; `unit` is what one counts in
/// ("GiB" for bytes).
std::vector<double> axis_ticks(double low, double high, double unit);

}  // namespace planner
