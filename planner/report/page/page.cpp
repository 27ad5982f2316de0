#include "planner/report/page/page.h"

#include <cmath>

#include <fmt/format.h>

#include "planner/report/cost_tables.h"
#include "planner/report/layout_words.h"
#include "planner/report/page/bar_charts.h"
#include "planner/report/page/embedded_page.h"
#include "planner/report/page/html.h"
#include "planner/report/page/scatter_chart.h"
#include "planner/report/page/timeline_chart.h"
#include "planner/report/plan_report.h"
#include "planner/report/simulation_report.h"

namespace planner {
namespace {

std::string embedded(std::string_view name) {
  for (const EmbeddedFile& file : embedded_page())
    if (file.name == name) return std::string(file.text);
  return {};
}

std::string tile(std::string_view title, const std::string& value, const std::string& note = {}) {
  return fmt::format(
      "<div class=\"tile\"><span class=\"note\">{}</span><b>{}</b><span class=\"note\">{}</span></div>\n",
      html_escaped(title), html_escaped(value), html_escaped(note));
}

/// The figures that are asked for first.
std::string key_figures(const PageContent& content) {
  const specs::CostBreakdown& cost = content.plan.prediction;
  std::string html = "<div class=\"tiles\">\n" + tile("step time", format_seconds(cost.step_seconds)) +
                     tile("throughput", format_count(std::llround(cost.tokens_per_second)), "tokens/s") +
                     tile("MFU", format_fraction(cost.model_flops_utilization)) +
                     tile("device memory", format_bytes(static_cast<double>(cost.peak_device_bytes)),
                          "of " + format_bytes(static_cast<double>(content.usable_device_bytes)));
  if (cost.run_seconds > 0) {
    html += tile("whole run", format_seconds(cost.run_seconds),
                 format_count(static_cast<std::int64_t>(cost.run_device_hours)) + " device-hours");
    if (cost.run_cost_dollars > 0)
      html += tile("cost of the run", format_dollars(cost.run_cost_dollars),
                   format_joules(cost.run_energy_joules));
  } else if (cost.cost_per_step_dollars > 0) {
    html += tile("cost a step", format_dollars(cost.cost_per_step_dollars),
                 format_joules(cost.energy_per_step_joules));
  }
  return html + "</div>\n";
}

PagePoint point_of(const specs::RunnerUp& runner_up, std::size_t number) {
  return {fmt::format("{}", number),
          mesh_words(runner_up.placement) + ", " + schedule_words(runner_up.placement),
          {runner_up.step_seconds, runner_up.cost_per_step_dollars,
           static_cast<double>(runner_up.peak_device_bytes)}};
}

/// The points of the front; the plan is the first where they are not a sweep's.
std::vector<PagePoint> points_of(const PageContent& content) {
  if (!content.sweep.empty()) return content.sweep;
  const specs::Plan& plan = content.plan;
  std::vector<PagePoint> points{{"plan", mesh_words(plan.placement) + ", " + schedule_words(plan.placement),
                                 pareto_point(plan.prediction)}};
  for (std::size_t i = 0; i < plan.runners_up.size(); ++i)
    points.push_back(point_of(plan.runners_up[i], i + 1));
  return points;
}

Table points_table(const std::vector<PagePoint>& points, const std::vector<bool>& front) {
  Table table{"points", "", {}, {}, false};
  table.columns = {{"label", ""},
                   {"front", "on the front"},
                   {"step_seconds", "step", Quantity::seconds},
                   {"cost_per_step_dollars", "cost a step", Quantity::dollars},
                   {"peak_device_bytes", "memory", Quantity::bytes},
                   {"placement", "placement"}};
  for (std::size_t i = 0; i < points.size(); ++i)
    table.rows.push_back({points[i].label, std::string(front[i] ? "yes" : ""),
                          points[i].measures.step_seconds, points[i].measures.cost_per_step_dollars,
                          points[i].measures.peak_device_bytes, points[i].words});
  return table;
}

std::string front_charts(const PageContent& content) {
  const std::vector<PagePoint> points = points_of(content);
  if (points.size() < 2) return {};
  std::vector<ParetoPoint> measures;
  for (const PagePoint& point : points) measures.push_back(point.measures);
  const std::vector<bool> front = pareto_front(measures);
  std::vector<ScatterPoint> by_memory, by_cost;
  // Of answers on equally many devices money is time by another name.
  bool cost_differs = false;
  const ParetoPoint of_plan = pareto_point(content.plan.prediction);
  for (std::size_t i = 0; i < points.size(); ++i) {
    const ParetoPoint& m = measures[i];
    const bool chosen =
        m.step_seconds == of_plan.step_seconds && m.peak_device_bytes == of_plan.peak_device_bytes;
    by_memory.push_back(
        {points[i].label, points[i].words, m.step_seconds, m.peak_device_bytes, front[i], chosen});
    by_cost.push_back(
        {points[i].label, points[i].words, m.step_seconds, m.cost_per_step_dollars, front[i], chosen});
    const double rate = m.cost_per_step_dollars / m.step_seconds;
    const double first_rate = measures[0].cost_per_step_dollars / measures[0].step_seconds;
    cost_differs = cost_differs || std::abs(rate - first_rate) > 1e-3 * first_rate;
  }
  const ScatterAxis time{"step time", Quantity::seconds};
  std::string html =
      "<ul class=\"legend\">\n<li><span class=\"swatch point-front\"></span>nothing here beats it in time, "
      "cost and "
      "memory</li>\n<li><span class=\"swatch point-other\"></span>beaten</li>\n"
      "<li><span class=\"swatch point-chosen\"></span>this plan</li>\n</ul>\n<div class=\"charts\">\n";
  html += scatter_chart(by_memory, time, {"device memory", Quantity::bytes});
  if (cost_differs) html += scatter_chart(by_cost, time, {"cost a step", Quantity::dollars});
  return html + "</div>\n" + html_of(points_table(points, front));
}

std::string advice_list(const specs::Plan& plan) {
  std::string html;
  for (const specs::Advice& advice : plan.advice)
    html += fmt::format("<li><b>{}</b>: {} <span class=\"note\">[{}]</span></li>\n",
                        html_escaped(advice.message), html_escaped(advice.reason),
                        html_escaped(advice.source.empty() ? advice.rule : advice.source));
  html = html.empty() ? html : "<ul>\n" + html + "</ul>\n";
  if (!plan.environment.empty())
    html += "<h3>Communication environment</h3>\n" + html_of(environment_table(plan));
  return html;
}

std::string details(std::string_view summary, const std::string& content) {
  return content.empty()
             ? content
             : fmt::format("<details><summary>{}</summary>\n{}</details>\n", html_escaped(summary), content);
}

}  // namespace

std::string report_page(const PageContent& content) {
  const specs::Plan& plan = content.plan;
  const specs::CostBreakdown& cost = plan.prediction;
  const Facts summary = plan_summary(plan, content.usable_device_bytes);
  // The page itself forbids everything that would need a network.
  std::string html = fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
      "script-src 'unsafe-inline'\">\n<title>{}</title>\n<style>\n{}</style>\n</head>\n<body>\n<main>\n"
      "<h1>{}</h1>\n<p class=\"note\">{}; {}</p>\n",
      html_escaped(summary.title), embedded("page.css"), html_escaped(summary.title),
      html_escaped(mesh_words(plan.placement)), html_escaped(schedule_words(plan.placement)));
  html += key_figures(content);
  html += html_section("what", "The plan", html_of(summary));
  html += html_section(
      "timeline-section", "Pipeline timeline",
      timeline_chart(plan, content.step) +
          details("Each pipeline rank in figures", html_of(rank_usage_table(plan, content.step))));
  html += html_section("time", "Time of one step",
                       time_bars(cost) + details("In figures", html_of(detailed_time_table(cost))));
  html += html_section("memory", "Memory of each pipeline rank",
                       memory_bars(cost, content.usable_device_bytes) +
                           details("In figures", html_of(memory_table(cost, content.usable_device_bytes)) +
                                                     html_of(off_device_table(cost))));
  html +=
      html_section("front", content.sweep.empty() ? "The plan and its runners-up" : "The points of the sweep",
                   front_charts(content));
  html += html_section("certificate", "Certificate", html_of(certificate_facts(plan.certificate)));
  html += html_section("advice", "Advice", advice_list(plan));
  return html + fmt::format(
                    "<footer class=\"note\">{}, cost model "
                    "{}</footer>\n</main>\n<script>\n{}</script>\n</body>\n</html>\n",
                    html_escaped(plan.generator), html_escaped(plan.cost_model_version), embedded("page.js"));
}

}  // namespace planner
