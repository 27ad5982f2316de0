// One self-contained page: predicted against measured, drawn as SVG.
#pragma once

#include <string>
#include <vector>

#include "tests/published/measures.h"
#include "tests/published/published_memory.h"

namespace published {

struct PlottedPoint {
  double measured = 0;
  double predicted = 0;
  std::string kind;  ///< its colour and line of the legend
  std::string name;  ///< shown under the pointer
};

struct Plot {
  std::string title;
  std::string unit;
  std::vector<PlottedPoint> points;  ///< drawn on logarithmic axes
};

/// The measures, one plot of all runs, one of memory, and one small plot a family.
std::string accuracy_page(const std::vector<Measure>& measures, const std::vector<PublishedRun>& runs,
                          const std::vector<double>& predicted, const std::vector<MemoryPoint>& memory);

/// A square plot of `pixels` with the diagonal and its 10 % band.
std::string svg_of(const Plot& plot, int pixels);

}  // namespace published
