// How the search's time grows with the cluster: the same job on 64 to 65,536 devices.
//
//   build/release/bin/search_growth_benchmark [OUT.svg]
//
// CPU seconds of planning alone, start-up and files left out; the best of five. Prints a table and
// the slope of the fitted line in log-log scale, and draws both.
#include <algorithm>
#include <cmath>
#include <ctime>
#include <fstream>
#include <iostream>
#include <vector>

#include <fmt/format.h>

#include "planner/plan/plan_experiment.h"
#include "specs/language/read_experiment.h"

namespace {

struct Point {
  double devices = 0;
  double seconds = 0;
  std::string candidates;
};

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

Point measure(specs::Experiment experiment, std::int64_t devices) {
  specs::ClusterGroup& group = experiment.cluster.groups.front();
  group.nodes = devices / group.node.devices;
  Point point{static_cast<double>(devices), 0, {}};
  for (int repeat = 0; repeat < 5; ++repeat) {
    const double start = cpu_seconds();
    const auto outcome = planner::plan_experiment(experiment);
    const double seconds = cpu_seconds() - start;
    if (repeat == 0 || seconds < point.seconds) point.seconds = seconds;
    if (outcome && outcome->plan) point.candidates = outcome->plan->certificate.space_candidates;
  }
  return point;
}

struct Line {
  double slope = 0, intercept = 0;
};

Line fitted(const std::vector<Point>& points) {
  double x = 0, y = 0, xx = 0, xy = 0;
  for (const Point& point : points) {
    const double a = std::log(point.devices), b = std::log(point.seconds);
    x += a, y += b, xx += a * a, xy += a * b;
  }
  const double n = static_cast<double>(points.size());
  const double slope = (n * xy - x * y) / (n * xx - x * x);
  return {slope, (y - slope * x) / n};
}

void draw(const std::vector<Point>& points, const Line& line, const std::string& path) {
  constexpr double width = 640, height = 400, margin = 60;
  const double least = std::log10(points.front().devices), most = std::log10(points.back().devices);
  const auto [low, high] = std::minmax_element(
      points.begin(), points.end(), [](const Point& a, const Point& b) { return a.seconds < b.seconds; });
  const double bottom = std::floor(std::log10(low->seconds)), top = std::ceil(std::log10(high->seconds));
  const auto x = [&](double devices) {
    return margin + (std::log10(devices) - least) / (most - least) * (width - 2 * margin);
  };
  const auto y = [&](double seconds) {
    return height - margin - (std::log10(seconds) - bottom) / (top - bottom) * (height - 2 * margin);
  };
  std::ofstream svg(path);
  svg << fmt::format(
      "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {} {}' font-family='sans-serif' font-size='12'>\n"
      "<rect width='100%' height='100%' fill='white'/>\n"
      "<text x='{}' y='20'>CPU seconds of the search against devices; slope {:.2f}</text>\n",
      width, height, margin, line.slope);
  for (double power = bottom; power <= top; ++power)
    svg << fmt::format(
        "<line x1='{0}' x2='{1}' y1='{2:.1f}' y2='{2:.1f}' stroke='#ddd'/><text x='8' y='{2:.1f}'>{3:g} "
        "s</text>\n",
        margin, width - margin, y(std::pow(10, power)), std::pow(10, power));
  for (const Point& point : points)
    svg << fmt::format(
        "<circle cx='{:.1f}' cy='{:.1f}' r='3' fill='#1f5fa8'/><text x='{:.1f}' y='{}' "
        "text-anchor='middle'>{:.0f}</text>\n",
        x(point.devices), y(point.seconds), x(point.devices), height - margin + 20, point.devices);
  const auto on_line = [&](double devices) {
    return std::exp(line.intercept + line.slope * std::log(devices));
  };
  svg << fmt::format("<line x1='{:.1f}' y1='{:.1f}' x2='{:.1f}' y2='{:.1f}' stroke='#c33'/>\n</svg>\n",
                     x(points.front().devices), y(on_line(points.front().devices)), x(points.back().devices),
                     y(on_line(points.back().devices)));
}

}  // namespace

int main(int argument_count, char** arguments) {
  const auto experiment = specs::read_experiment("examples/gpt3-175b.toml",
                                                 {"model.preset=llama3-70b", "training.global_batch=65536",
                                                  "training.sequence_length=4096", "training.tokens=0"});
  if (!experiment) {
    std::cerr << experiment.diagnostics.render();
    return 2;
  }
  std::vector<Point> points;
  for (std::int64_t devices = 64; devices <= 65536; devices *= 2) {
    points.push_back(measure(*experiment, devices));
    std::cout << fmt::format("{:>6} devices  {:8.2f} ms  {:>16} candidates\n", devices,
                             1e3 * points.back().seconds, points.back().candidates);
  }
  const Line line = fitted(points);
  std::cout << fmt::format("slope {:.2f}\n", line.slope);
  if (argument_count > 1) draw(points, line, arguments[1]);
  return 0;
}
