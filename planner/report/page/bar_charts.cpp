#include "planner/report/page/bar_charts.h"

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "planner/plan/cost_difference.h"
#include "planner/report/cost_tables.h"
#include "planner/report/page/html.h"
#include "planner/wording/quantity.h"

namespace planner {
namespace {

using specs::MemoryClass;

constexpr std::size_t memory_classes = specs::EnumNames<MemoryClass>::names.size();
using ClassBytes = std::array<std::int64_t, memory_classes>;

/// Pipeline ranks next to each other whose memory is the same in every class.
struct RankRun {
  std::int64_t first = 0;
  std::int64_t last = 0;
  ClassBytes bytes{};
  std::int64_t total() const {
    std::int64_t sum = 0;
    for (const std::int64_t part : bytes) sum += part;
    return sum;
  }
};

std::vector<RankRun> rank_runs(const specs::CostBreakdown& cost) {
  std::map<std::int64_t, ClassBytes> by_rank;
  for (const specs::MemoryEntry& entry : cost.memory)
    if (entry.location == specs::MemoryLocation::device)
      by_rank[entry.pipeline_rank][static_cast<std::size_t>(entry.memory_class)] += entry.bytes;
  std::vector<RankRun> runs;
  for (const auto& [rank, bytes] : by_rank) {
    if (!runs.empty() && runs.back().bytes == bytes)
      runs.back().last = rank;
    else
      runs.push_back({rank, rank, bytes});
  }
  return runs;
}

std::string css_class(MemoryClass memory_class) { return "memory-" + std::string(name_of(memory_class)); }

std::string rank_words(const RankRun& run) {
  return run.first == run.last ? fmt::format("rank {}", run.first)
                               : fmt::format("ranks {}–{}", run.first, run.last);
}

std::string memory_bar(const RankRun& run, double scale_bytes, std::int64_t usable_device_bytes) {
  const auto percent = [&](std::int64_t bytes) { return 100 * static_cast<double>(bytes) / scale_bytes; };
  std::string html = fmt::format("<div class=\"bar-label\">{}</div>\n<div class=\"track\">", rank_words(run));
  for (std::size_t i = 0; i < memory_classes; ++i) {
    if (run.bytes[i] <= 0) continue;
    const MemoryClass memory_class = specs::EnumNames<MemoryClass>::names[i].first;
    html += fmt::format("<span class=\"segment {}\" style=\"width:{:.3f}%\" title=\"{}: {}\"></span>",
                        css_class(memory_class), percent(run.bytes[i]), spoken_name(memory_class),
                        format_bytes(static_cast<double>(run.bytes[i])));
  }
  html += fmt::format("<span class=\"limit\" style=\"left:{:.3f}%\"></span></div>\n",
                      percent(usable_device_bytes));
  return html +
         fmt::format("<div class=\"bar-value\">{}</div>\n", format_bytes(static_cast<double>(run.total())));
}

std::string memory_legend(const std::vector<RankRun>& runs) {
  std::string html = "<ul class=\"legend\">\n";
  for (const auto& [memory_class, name] : specs::EnumNames<MemoryClass>::names) {
    const auto index = static_cast<std::size_t>(memory_class);
    if (std::any_of(runs.begin(), runs.end(), [&](const RankRun& run) { return run.bytes[index] > 0; }))
      html += fmt::format("<li><span class=\"swatch {}\"></span>{}</li>\n", css_class(memory_class),
                          spoken_name(memory_class));
  }
  return html + "</ul>\n";
}

std::string_view term_class(specs::TimeTerm term) {
  switch (kind_of(term)) {
    case TermKind::compute:
      return "term-compute";
    case TermKind::communication:
      return "term-communication";
    case TermKind::bubble:
      return "term-bubble";
    case TermKind::other:
      return "term-other";
  }
  return "term-other";
}

}  // namespace

std::string memory_bars(const specs::CostBreakdown& cost, std::int64_t usable_device_bytes) {
  const std::vector<RankRun> runs = rank_runs(cost);
  if (runs.empty()) return {};
  std::int64_t longest = usable_device_bytes;
  for (const RankRun& run : runs) longest = std::max(longest, run.total());
  std::string html = memory_legend(runs) + "<div class=\"bars\">\n";
  for (const RankRun& run : runs) html += memory_bar(run, static_cast<double>(longest), usable_device_bytes);
  return html + "</div>\n" +
         fmt::format("<p class=\"note\">The line marks the {} that a device has for training.</p>\n",
                     format_bytes(static_cast<double>(usable_device_bytes)));
}

std::string time_bars(const specs::CostBreakdown& cost) {
  std::vector<std::pair<specs::TimeTerm, double>> terms;
  for (const auto& [term, name] : specs::EnumNames<specs::TimeTerm>::names)
    if (const double seconds = cost.exposed_seconds(term); seconds > 0) terms.emplace_back(term, seconds);
  if (terms.empty()) return {};
  std::stable_sort(terms.begin(), terms.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string html =
      "<ul class=\"legend\">\n<li><span class=\"swatch term-compute\"></span>compute</li>\n"
      "<li><span class=\"swatch term-communication\"></span>communication not hidden</li>\n"
      "<li><span class=\"swatch term-bubble\"></span>bubble</li>\n"
      "<li><span class=\"swatch term-other\"></span>other</li>\n</ul>\n<div class=\"bars\">\n";
  for (const auto& [term, seconds] : terms)
    html += fmt::format(
        "<div class=\"bar-label\">{}</div>\n<div class=\"track plain\"><span class=\"segment {}\" "
        "style=\"width:{:.3f}%\"></span></div>\n<div class=\"bar-value\">{} <span "
        "class=\"note\">{}</span></div>\n",
        spoken_name(term), term_class(term), 100 * seconds / terms.front().second, format_seconds(seconds),
        format_fraction(seconds / cost.step_seconds));
  return html + "</div>\n";
}

}  // namespace planner
