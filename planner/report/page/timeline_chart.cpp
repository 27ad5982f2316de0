#include "planner/report/page/timeline_chart.h"

#include <cmath>
#include <iterator>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "planner/report/page/html.h"
#include "planner/simulate/rank_usage.h"
#include "planner/wording/quantity.h"

namespace planner {
namespace {

constexpr double ticks_per_second = 1e7;

std::int64_t ticks(double seconds) { return std::llround(seconds * ticks_per_second); }

/// The numbers of one row, in the order of their starts.
class Run {
 public:
  void add(const TimedTask& timed) {
    const std::int64_t start = ticks(timed.start_seconds), end = ticks(timed.end_seconds);
    const specs::Action& action = timed.task.action;
    fmt::format_to(std::back_inserter(text_), "{}{},{},{},{},{}", text_.empty() ? "" : ",",
                   start - end_of_last_, end - start, static_cast<int>(action.kind), action.stage,
                   action.micro_batch);
    end_of_last_ = end;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  std::int64_t end_of_last_ = 0;
};

std::string kind_names() {
  std::vector<std::string> names;
  for (const auto& [kind, letters] : specs::EnumNames<specs::ActionKind>::names)
    names.push_back(fmt::format("\"{}\"", action_words(kind)));
  return fmt::format("[{}]", fmt::join(names, ","));
}

std::string data_of(const specs::Plan& plan, const StepSimulation& step) {
  struct Row {
    Run compute, communication;
  };
  std::vector<Row> rows(static_cast<std::size_t>(plan.placement.pipeline_ranks()));
  for (const TimedTask& timed : step.pipeline.tasks) {
    if (timed.task.seconds <= 0 || timed.task.to_rank >= 0) continue;
    Row& row = rows[static_cast<std::size_t>(timed.task.rank)];
    (is_compute(timed.task.action.kind) ? row.compute : row.communication).add(timed);
  }
  std::string json = fmt::format("{{\"total\":{},\"update\":{},\"kinds\":{},\"ranks\":[",
                                 ticks(step.seconds()), ticks(step.update_seconds), kind_names());
  for (std::size_t rank = 0; rank < rows.size(); ++rank)
    json +=
        fmt::format("{}{{\"compute\":[{}],\"communication\":[{}],\"update\":{}}}", rank == 0 ? "" : ",\n",
                    rows[rank].compute.text(), rows[rank].communication.text(), ticks(step.update_of(rank)));
  return json + "]}";
}

bool has_split_backward(const StepSimulation& step) {
  for (const TimedTask& timed : step.pipeline.tasks)
    if (timed.task.action.kind == specs::ActionKind::weight_gradient) return true;
  return false;
}

}  // namespace

std::string timeline_chart(const specs::Plan& plan, const StepSimulation& step) {
  std::string legend = "<ul class=\"legend\">\n<li><span class=\"swatch task-forward\"></span>forward</li>\n";
  if (has_split_backward(step))
    legend +=
        "<li><span class=\"swatch task-input-gradient\"></span>input gradient</li>\n"
        "<li><span class=\"swatch task-weight-gradient\"></span>weight gradient</li>\n";
  else
    legend += "<li><span class=\"swatch task-backward\"></span>backward</li>\n";
  legend +=
      "<li><span class=\"swatch task-communication\"></span>gather, reduction, update</li>\n"
      "<li><span class=\"swatch task-idle\"></span>idle</li>\n</ul>\n";
  return legend +
         fmt::format(
             "<div class=\"controls\"><button type=\"button\" data-zoom=\"in\">closer</button>"
             "<button type=\"button\" data-zoom=\"out\">wider</button>"
             "<button type=\"button\" data-zoom=\"all\">whole step</button></div>\n"
             "<canvas id=\"timeline\" tabindex=\"0\" role=\"img\" aria-label=\"What each of {} pipeline "
             "ranks does "
             "during a step of {}\"></canvas>\n"
             "<p id=\"pointed\" class=\"note\">Point at an action to see what it is; drag to move.</p>\n"
             "<script type=\"application/json\" id=\"timeline-data\">{}</script>\n",
             plan.placement.pipeline_ranks(), html_escaped(format_seconds(step.seconds())),
             data_of(plan, step));
}

}  // namespace planner
