// What a run ends with: its losses and its figures beside the predicted ones.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace runtime {

/// Peaks of the ranks that a pipeline rank consists of. What a collective still holds when the next one
/// begins differs from step to step, so the step in the middle stands for all, beside the worst.
struct PipelineRankMemory {
  std::int64_t measured_bytes = 0;  ///< of the fullest rank, the median over the steps
  std::int64_t worst_bytes = 0;     ///< of any rank in any step
  std::int64_t predicted_bytes = 0;
  std::int64_t host_bytes = 0;  ///< of the fullest rank: what is offloaded
  std::int64_t predicted_host_bytes = 0;
};

struct RunSummary {
  std::int64_t steps = 0;
  bool trained = true;  ///< false: resumed where it had ended, so that nothing was measured
  double first_loss = 0;
  double last_loss = 0;
  bool evaluated = false;
  double held_back_loss = 0;     ///< nats per token
  double held_back_entropy = 0;  ///< of the frequencies of the held-back tokens
  std::string token = "byte";    ///< what a token is, for units
  double step_seconds = 0;       ///< median
  double predicted_step_seconds = 0;
  double tokens_per_second = 0;
  std::vector<PipelineRankMemory> memory;  ///< by pipeline rank
  std::filesystem::path run_directory;
  std::filesystem::path checkpoint;  ///< empty: none was written
};

/// 1234567 → "1,234,567".
std::string with_separators(std::int64_t number);

/// A table for a terminal, one line a figure, each line ended.
std::string render(const RunSummary& summary);

/// The value in the middle; the mean of the two in the middle of an even number; 0 for none.
double median(std::vector<double> values);

}  // namespace runtime
