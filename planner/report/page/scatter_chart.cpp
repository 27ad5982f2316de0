#include "planner/report/page/scatter_chart.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "planner/report/page/html.h"

namespace planner {
namespace {

// Of the drawing, in its own units; text is 13 of them high.
constexpr double width = 460, height = 300;
constexpr double left = 84, right = 16, top = 14, bottom = 46;
constexpr double letter_width = 7.5, letter_height = 13;

struct Box {
  double x0, y0, x1, y1;
  bool meets(const Box& other) const {
    return x0 < other.x1 && other.x0 < x1 && y0 < other.y1 && other.y0 < y1;
  }
};

/// What people count a quantity in where it has this magnitude.
double unit_of(Quantity quantity, double magnitude) {
  if (quantity == Quantity::bytes) {
    double unit = 1;
    while (magnitude >= 1024 * unit && unit < 1e12) unit *= 1024;
    return unit;
  }
  if (quantity != Quantity::seconds) return 1;
  for (const double unit : {86400.0, 3600.0})
    if (magnitude >= 2 * unit) return unit;
  if (magnitude >= 600) return 60;
  return magnitude >= 1 ? 1 : 1e-3;
}

/// One axis: the values shown and where they lie.
class Scale {
 public:
  Scale(std::vector<double> values, double from, double to, Quantity quantity) : from_(from), to_(to) {
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    const double margin = *high > *low ? 0.08 * (*high - *low) : std::max(0.05 * std::abs(*high), 1e-12);
    low_ = std::max(*low >= 0 ? 0.0 : *low - margin, *low - margin);
    high_ = *high + margin;
    ticks_ = axis_ticks(low_, high_, unit_of(quantity, *high));
  }
  double at(double value) const { return from_ + (value - low_) / (high_ - low_) * (to_ - from_); }
  const std::vector<double>& ticks() const { return ticks_; }

 private:
  double from_, to_, low_ = 0, high_ = 1;
  std::vector<double> ticks_;
};

std::string tick_marks(const Scale& x, const Scale& y, const ScatterAxis& x_axis, const ScatterAxis& y_axis) {
  std::string svg;
  // Words under the horizontal axis stand where they do not touch the last.
  double free_from = 0;
  for (const double tick : x.ticks()) {
    const std::string words = format_quantity(x_axis.quantity, tick);
    const double half = letter_width * static_cast<double>(words.size()) / 2;
    svg += fmt::format("<line class=\"grid\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\"/>",
                       x.at(tick), top, height - bottom);
    if (x.at(tick) - half < free_from || x.at(tick) + half > width) continue;
    free_from = x.at(tick) + half + letter_width;
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n", x.at(tick),
                       height - bottom + 16, words);
  }
  for (const double tick : y.ticks())
    svg += fmt::format(
        "<line class=\"grid\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>"
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n",
        left, width - right, y.at(tick), y.at(tick), left - 6, y.at(tick) + 4,
        format_quantity(y_axis.quantity, tick));
  return svg;
}

/// A place beside the point where its label touches nothing that is drawn; none where there is no such place.
std::string placed_label(const ScatterPoint& point, double px, double py, std::vector<Box>& taken) {
  const double w = letter_width * static_cast<double>(point.label.size());
  const std::array<std::pair<double, double>, 4> corners{{{px + 8, py - 6},
                                                          {px - 8 - w, py - 6},
                                                          {px + 8, py + 6 + letter_height},
                                                          {px - 8 - w, py + 6 + letter_height}}};
  for (const auto& [x0, baseline] : corners) {
    const Box box{x0, baseline - letter_height, x0 + w, baseline + 3};
    const bool outside = box.x0 < left || box.x1 > width || box.y0 < 0 || box.y1 > height - bottom;
    if (outside ||
        std::any_of(taken.begin(), taken.end(), [&](const Box& other) { return box.meets(other); }))
      continue;
    taken.push_back(box);
    return fmt::format("<text class=\"point-label\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", x0, baseline,
                       html_escaped(point.label));
  }
  return {};
}

}  // namespace

std::vector<double> axis_ticks(double low, double high, double unit) {
  const double span = (high - low) / unit;
  double step = std::pow(10.0, std::floor(std::log10(span)));
  while (span / step < 3) step /= 2;
  while (span / step > 6) step *= 2;
  std::vector<double> ticks;
  for (double tick = std::ceil(low / unit / step - 1e-9); tick * step * unit <= high * (1 + 1e-12); ++tick)
    ticks.push_back(tick * step * unit);
  return ticks;
}

std::string scatter_chart(const std::vector<ScatterPoint>& points, const ScatterAxis& x_axis,
                          const ScatterAxis& y_axis) {
  if (points.size() < 2) return {};
  std::vector<double> xs, ys;
  for (const ScatterPoint& point : points) {
    xs.push_back(point.x);
    ys.push_back(point.y);
  }
  const Scale x(xs, left, width - right, x_axis.quantity);
  const Scale y(ys, height - bottom, top, y_axis.quantity);
  std::string svg = fmt::format(
      "<svg class=\"scatter\" viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"{} against {}\">\n",
      width, height, html_escaped(y_axis.title), html_escaped(x_axis.title));
  svg += tick_marks(x, y, x_axis, y_axis);
  svg += fmt::format(
      "<text class=\"axis-title\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n"
      "<text class=\"axis-title\" transform=\"translate(14 {:.1f}) rotate(-90)\" "
      "text-anchor=\"middle\">{}</text>\n",
      (left + width - right) / 2, height - 8, html_escaped(x_axis.title), (top + height - bottom) / 2,
      html_escaped(y_axis.title));
  std::vector<Box> taken;
  for (const ScatterPoint& point : points)
    taken.push_back({x.at(point.x) - 6, y.at(point.y) - 6, x.at(point.x) + 6, y.at(point.y) + 6});
  std::string labels;
  for (const ScatterPoint& point : points) {
    const double px = x.at(point.x), py = y.at(point.y);
    svg += fmt::format(
        "<circle class=\"point{}{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\"><title>{}</title></circle>\n",
        point.on_front ? " front" : "", point.chosen ? " chosen" : "", px, py, html_escaped(point.words));
    labels += placed_label(point, px, py, taken);
  }
  return svg + labels + "</svg>\n";
}

}  // namespace planner
