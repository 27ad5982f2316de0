// `metrics.jsonl`: one JSON object a step, written by rank 0.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace runtime {

struct StepMetrics {
  std::int64_t step = 0;  ///< from 1
  double loss = 0;        ///< nats per target token, of the global batch
  double gradient_norm = 0;
  double learning_rate = 0;
  double loss_scale = 1;  ///< that the step used; above 1 in fp16 alone
  bool updated = true;    ///< false: skipped, since something was not finite
  double step_seconds = 0;
  double tokens_per_second = 0;                 ///< of the whole job
  double data_wait_seconds = 0;                 ///< the longest of any rank
  std::vector<std::int64_t> peak_tensor_bytes;  ///< by rank, in this step
  std::vector<std::int64_t> peak_host_bytes;    ///< likewise, of what is offloaded
};

/// One line, without its end.
std::string to_json_line(const StepMetrics& metrics);

class MetricsFile {
 public:
  /// Keeps the lines of an earlier part of the run up to `last_step` and drops the rest, so that a resumed
  /// run has each step once. Error: RunError (storage).
  MetricsFile(std::filesystem::path path, std::int64_t last_step);
  /// Error: RunError (storage).
  void write(const StepMetrics& metrics);
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  std::ofstream file_;
};

}  // namespace runtime
