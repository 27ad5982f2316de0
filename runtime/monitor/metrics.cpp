#include "runtime/monitor/metrics.h"

#include <cerrno>
#include <cstring>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/launch/run_error.h"

namespace runtime {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path) {
  throw RunError(exit_storage,
                 fmt::format("cannot write the metrics {}: {}", path.string(), std::strerror(errno)));
}

/// The lines of steps 1 … last_step; what is no such line is dropped.
std::vector<std::string> lines_until(const std::filesystem::path& path, std::int64_t last_step) {
  std::vector<std::string> kept;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (json.is_object() && json.contains("step") && json["step"].is_number_integer() &&
        json["step"] <= last_step)
      kept.push_back(line);
  }
  return kept;
}

}  // namespace

std::string to_json_line(const StepMetrics& metrics) {
  const nlohmann::ordered_json json{
      {"step", metrics.step},
      {"loss", metrics.loss},
      {"gradient_norm", metrics.gradient_norm},
      {"learning_rate", metrics.learning_rate},
      {"loss_scale", metrics.loss_scale},
      {"updated", metrics.updated},
      {"step_seconds", metrics.step_seconds},
      {"tokens_per_second", metrics.tokens_per_second},
      {"data_wait_seconds", metrics.data_wait_seconds},
      {"peak_tensor_bytes", metrics.peak_tensor_bytes},
      {"peak_host_bytes", metrics.peak_host_bytes},
  };
  return json.dump();
}

MetricsFile::MetricsFile(std::filesystem::path path, std::int64_t last_step) : path_(std::move(path)) {
  const std::vector<std::string> kept = lines_until(path_, last_step);
  const std::filesystem::path temporary = path_.string() + ".tmp";
  {
    std::ofstream file(temporary);
    for (const std::string& line : kept) file << line << '\n';
    file.close();
    if (!file) fail(path_);
  }
  std::error_code error;
  std::filesystem::rename(temporary, path_, error);
  if (error) fail(path_);
  file_.open(path_, std::ios::app);
  if (!file_) fail(path_);
}

void MetricsFile::write(const StepMetrics& metrics) {
  file_ << to_json_line(metrics) << '\n' << std::flush;
  if (!file_) fail(path_);
}

}  // namespace runtime
