#include "runtime/train/run_summary.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

namespace runtime {
namespace {

constexpr double mebibyte = 1024.0 * 1024.0;

std::string line(std::string_view name, const std::string& value) {
  return fmt::format("  {:<20}{}{}\n", name, name.size() < 20 ? "" : "  ", value);
}

/// " (+4.2 %)" of measured against predicted.
std::string deviation(double measured, double predicted) {
  if (predicted <= 0) return {};
  return fmt::format(" ({:+.1f} %)", 100 * (measured - predicted) / predicted);
}

std::string loss_lines(const RunSummary& summary) {
  std::string text = line("training loss",
                          summary.trained ? fmt::format("{:.4f} at the first step, {:.4f} at step {}",
                                                        summary.first_loss, summary.last_loss, summary.steps)
                                          : fmt::format("none: the run had ended at step {}", summary.steps));
  if (!summary.evaluated) return text;
  const bool below = summary.held_back_loss < summary.held_back_entropy;
  text += line("held-back loss",
               fmt::format("{:.4f} nats/{}, {} the {} entropy {:.4f}", summary.held_back_loss, summary.token,
                           below ? "below" : "not below", summary.token, summary.held_back_entropy));
  return text;
}

std::string memory_lines(const RunSummary& summary) {
  std::string text;
  for (std::size_t rank = 0; rank < summary.memory.size(); ++rank) {
    const PipelineRankMemory& memory = summary.memory[rank];
    const auto measured = static_cast<double>(memory.measured_bytes);
    const auto predicted = static_cast<double>(memory.predicted_bytes);
    const std::string name =
        summary.memory.size() == 1 ? "peak memory" : fmt::format("peak memory, stage {}", rank);
    std::string worst;
    if (memory.worst_bytes > memory.measured_bytes)
      worst =
          fmt::format("; {:.1f} MiB in the worst step", static_cast<double>(memory.worst_bytes) / mebibyte);
    text += line(name, fmt::format("{:.1f} MiB a rank, predicted {:.1f} MiB{}{}", measured / mebibyte,
                                   predicted / mebibyte, deviation(measured, predicted), worst));
    if (memory.host_bytes == 0 && memory.predicted_host_bytes == 0) continue;
    const auto host = static_cast<double>(memory.host_bytes);
    const auto predicted_host = static_cast<double>(memory.predicted_host_bytes);
    text += line("  on the host", fmt::format("{:.1f} MiB a rank, predicted {:.1f} MiB{}", host / mebibyte,
                                              predicted_host / mebibyte, deviation(host, predicted_host)));
  }
  return text;
}

}  // namespace

std::string with_separators(std::int64_t number) {
  std::string digits = std::to_string(number);
  const std::ptrdiff_t first = number < 0 ? 1 : 0;
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > first; at -= 3)
    digits.insert(static_cast<std::size_t>(at), ",");
  return digits;
}

namespace {

std::string measured_lines(const RunSummary& summary) {
  std::string text =
      line("step time",
           fmt::format("{:.4f} s, predicted {:.4f} s{}", summary.step_seconds, summary.predicted_step_seconds,
                       deviation(summary.step_seconds, summary.predicted_step_seconds)));
  text +=
      line("throughput", with_separators(static_cast<std::int64_t>(summary.tokens_per_second)) + " tokens/s");
  text += memory_lines(summary);
  return text;
}

}  // namespace

std::string render(const RunSummary& summary) {
  std::string text = loss_lines(summary);
  if (summary.trained) text += measured_lines(summary);
  if (!summary.checkpoint.empty()) text += line("checkpoint", summary.checkpoint.string());
  text += line("metrics", (summary.run_directory / "metrics.jsonl").string());
  text += line("logs", (summary.run_directory / "logs").string());
  return text;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace runtime
