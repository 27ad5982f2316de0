// One rank's whole run: from a plan to a trained, evaluated and saved model.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "runtime/launch/launch_environment.h"
#include "runtime/train/run_directory.h"
#include "specs/plan/plan.h"
#include "specs/schedule/schedule.h"

namespace runtime {

struct RunOptions {
  specs::Plan plan;
  specs::Schedule schedule;  ///< of `executable_schedule`
  std::string plan_text;     ///< as read: copied into the run directory, and the same on all ranks
  std::filesystem::path run_directory;
  std::optional<std::filesystem::path> data;  ///< nothing: the default text
  std::int64_t data_tokens = 0;               ///< only the first ones are used; 0: all
  /// Weights to begin with, of another program; nothing: random ones. A run that resumes does not read them.
  std::optional<std::filesystem::path> initial_weights;
  /// The last step; nothing: the plan's. The learning rate follows the plan's steps all the same.
  std::optional<std::int64_t> steps;
  /// Resume: from the newest whole checkpoint, where there is one. Dry run: connect, build the model, train
  /// nothing.
  RunDirectoryUse directory_use;
  bool debug_synchronise = false;  ///< wait for all communication after each backward pass
  std::string log_level = "info";
  std::chrono::milliseconds timeout{600000};  ///< of each collective
};

/// Trains as the rank `identity`. Rank 0 prints the progress and the summary to standard output.
/// Errors: RunError, CommunicationError and what LibTorch throws; `failure_of` tells them apart.
void run_rank(const RunOptions& options, const RankIdentity& identity);

}  // namespace runtime
