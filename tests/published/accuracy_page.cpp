#include "tests/published/accuracy_page.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>

namespace published {
namespace {

constexpr const char* style = R"(<style>
  body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; color: #1d2733; padding: 0 1rem; }
  h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
  table { border-collapse: collapse; } td, th { padding: .2rem .9rem .2rem 0; text-align: left; border-bottom: 1px solid #e3e8ee; }
  .misses { color: #b3261e; font-weight: 600; }
  .plots { display: flex; flex-wrap: wrap; gap: 1rem; } figure { margin: 0; }
  figcaption { font-size: .8rem; color: #1d2733; padding-left: 34px; } svg text { font: 11px system-ui, sans-serif; fill: #51606f; }
</style>)";

std::string escaped(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (c == '<')
      safe += "&lt;";
    else if (c == '&')
      safe += "&amp;";
    else if (c == '"')
      safe += "&quot;";
    else
      safe += c;
  }
  return safe;
}

template <class... Values>
std::string format(const char* pattern, Values... values) {
  char text[512];
  std::snprintf(text, sizeof text, pattern, values...);
  return text;
}

const char* colour_of(const std::string& kind) {
  constexpr std::array<std::pair<const char*, const char*>, 5> colours{{{"dense 16-bit", "#1f6feb"},
                                                                        {"dense 8- and 4-bit", "#8250df"},
                                                                        {"mixture", "#d1600a"},
                                                                        {"vtrain", "#8c959f"},
                                                                        {"memory", "#1a7f37"}}};
  for (const auto& [name, colour] : colours)
    if (kind == name) return colour;
  return "#1d2733";
}

std::string kind_of(const PublishedRun& run) {
  if (run.family.starts_with("vtrain")) return "vtrain";
  if (run.mixture) return "mixture";
  return run.low_precision ? "dense 8- and 4-bit" : "dense 16-bit";
}

/// Logarithmic in both directions, the same range on both axes.
struct Axes {
  double low, high;
  double margin, side;
  double along(double value) const { return margin + side * std::log(value / low) / std::log(high / low); }
  double x(double value) const { return along(value); }
  double y(double value) const { return 2 * margin + side - along(value); }
};

Axes axes_of(const Plot& plot, int pixels) {
  double low = std::numeric_limits<double>::max(), high = 0;
  for (const PlottedPoint& point : plot.points) {
    low = std::min({low, point.measured, point.predicted});
    high = std::max({high, point.measured, point.predicted});
  }
  if (high <= 0) low = high = 1;
  low /= 1.15;
  high *= 1.15;
  // A few close runs are not blown up until the band fills the plot.
  constexpr double least_range = 2.5;
  const double wider = std::sqrt(std::max(1.0, least_range * low / high));
  constexpr double margin = 34;
  return {low / wider, high * wider, margin, pixels - 2 * margin};
}

/// Of each decade; more where the axis has fewer decades.
std::vector<double> steps_of(const Axes& axes) {
  const double range = axes.high / axes.low;
  if (range > 30) return {1, 3};
  if (range > 6) return {1, 2, 5};
  return {1, 1.5, 2, 3, 4, 6, 8};
}

std::string ticks(const Axes& axes) {
  std::string svg;
  for (double decade = std::pow(10, std::floor(std::log10(axes.low))); decade <= axes.high; decade *= 10)
    for (const double step : steps_of(axes)) {
      const double value = decade * step;
      if (value < axes.low || value > axes.high) continue;
      svg += format("<text x='%.1f' y='%.1f' text-anchor='middle'>%g</text>", axes.x(value),
                    axes.margin + axes.side + 14, value);
      svg += format("<text x='%.1f' y='%.1f' text-anchor='end'>%g</text>", axes.margin - 4, axes.y(value) + 4,
                    value);
      svg += format("<path d='M%.1f %.1fV%.1fM%.1f %.1fH%.1f' stroke='#e3e8ee'/>", axes.x(value), axes.margin,
                    axes.margin + axes.side, axes.margin, axes.y(value), axes.margin + axes.side);
    }
  return svg;
}

std::string figure(const Plot& plot, int pixels, const std::string& caption) {
  return format("<figure style='width:%dpx'>", pixels) + "<figcaption>" + escaped(caption) + "</figcaption>" +
         svg_of(plot, pixels) + "</figure>\n";
}

std::string table_of(const std::vector<Measure>& measures) {
  std::string html = "<table><tr><th>measure</th><th>reached</th><th>bound</th><th></th></tr>\n";
  for (const Measure& measure : measures)
    html += format("<tr%s><td>%s</td><td>%s</td><td>%s</td><td>%s</td></tr>\n",
                   measure.holds() ? "" : " class=misses", escaped(measure.name).c_str(),
                   value_of(measure).c_str(), bound_of(measure).c_str(), escaped(measure.detail).c_str());
  return html + "</table>\n";
}

std::string legend(const Plot& plot) {
  std::map<std::string, std::size_t> kinds;
  for (const PlottedPoint& point : plot.points) ++kinds[point.kind];
  std::string html = "<p>";
  for (const auto& [kind, count] : kinds)
    html += format("<span style='color:%s'>●</span> %s (%zu)&ensp;", colour_of(kind), kind.c_str(), count);
  return html + "</p>\n";
}

}  // namespace

std::string svg_of(const Plot& plot, int pixels) {
  const Axes axes = axes_of(plot, pixels);
  std::string svg = format("<svg width='%d' height='%d' role='img' aria-label='%s'>", pixels, pixels,
                           escaped(plot.title).c_str());
  svg += ticks(axes);
  const double edge = axes.margin + axes.side;
  svg += format("<rect x='%.1f' y='%.1f' width='%.1f' height='%.1f' fill='none' stroke='#9aa7b4'/>",
                axes.margin, axes.margin, axes.side, axes.side);
  const double band = axes.side * std::log(1.1) / std::log(axes.high / axes.low);
  svg += format(
      "<path d='M%.1f %.1fL%.1f %.1fL%.1f %.1fL%.1f %.1fL%.1f %.1fL%.1f %.1fZ' fill='#1f6feb' "
      "fill-opacity='.08'/>",
      axes.margin, edge, axes.margin, edge - band, edge - band, axes.margin, edge, axes.margin, edge,
      axes.margin + band, axes.margin + band, edge);
  svg += format("<path d='M%.1f %.1fL%.1f %.1f' stroke='#9aa7b4'/>", axes.margin, edge, edge, axes.margin);
  for (const PlottedPoint& point : plot.points)
    svg += format("<circle cx='%.1f' cy='%.1f' r='%s' fill='%s' fill-opacity='.55'><title>",
                  axes.x(point.measured), axes.y(point.predicted), pixels > 400 ? "3" : "2.5",
                  colour_of(point.kind)) +
           escaped(point.name) +
           format(" measured %.4g predicted %.4g (%+.1f %%)</title></circle>", point.measured,
                  point.predicted, 100 * (point.predicted / point.measured - 1));
  svg += format("<text x='%.1f' y='%.1f' text-anchor='end'>measured, %s</text>", edge,
                axes.margin + axes.side + 28, plot.unit.c_str());
  svg += format("<text x='%.1f' y='%.1f'>predicted, %s</text></svg>", axes.margin, axes.margin - 8,
                plot.unit.c_str());
  return svg;
}

std::string accuracy_page(const std::vector<Measure>& measures, const std::vector<PublishedRun>& runs,
                          const std::vector<double>& predicted, const std::vector<MemoryPoint>& memory) {
  Plot all{"Step time of every run", "s", {}};
  std::map<std::string, Plot> families;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const PlottedPoint point{runs[i].step_seconds, predicted[i], kind_of(runs[i]), runs[i].id};
    all.points.push_back(point);
    Plot& family = families[runs[i].family];
    family.title = runs[i].family;
    family.unit = "s";
    family.points.push_back(point);
  }
  Plot bytes{"Memory of every point", "GiB", {}};
  for (const MemoryPoint& point : memory)
    if (!point.out_of_memory())
      bytes.points.push_back({point.measured_gib, point.predicted_gib, "memory", point.id});
  const Families errors = family_errors(runs, predicted, [](const PublishedRun&) { return true; });
  std::string html =
      "<!doctype html><html lang=en><meta charset=utf-8><title>Accuracy of the cost models</title>";
  html += style;
  html += "<h1>Predicted against measured</h1>\n<p>" + std::to_string(runs.size()) + " distinct runs of " +
          std::to_string(families.size()) +
          " families; the band is 10 % to either side. Written by <code>script/accuracy</code>.</p>\n";
  html += table_of(measures) + "<h2>All runs</h2>\n" + legend(all) + "<div class=plots>" +
          figure(all, 540, "step time of every run") + figure(bytes, 540, "device memory of every point") +
          "</div>\n<h2>By family</h2>\n<div class=plots>";
  for (const auto& [name, plot] : families)
    html += figure(plot, 264,
                   name + format(": %zu, mean %.1f %%", plot.points.size(), 100 * errors.at(name).mean));
  return html + "</div></html>\n";
}

}  // namespace published
