// A published measurement as an experiment and a placement of this project.
#pragma once

#include <string>
#include <vector>

#include "cost_models/cost_inputs.h"
#include "cost_models/rank_price.h"
#include "specs/language/experiment.h"
#include "specs/plan/placement.h"
#include "tests/published/csv.h"

namespace published {

struct PublishedRun {
  std::string id;
  std::string family;
  std::string device;
  std::string identity;  ///< equal for rows with identical inputs
  std::string job;       ///< equal for rows that train the same model the same way on as many devices
  specs::Experiment experiment;
  specs::RegularPlacement placement;
  cost_models::PipelineCut cut;  ///< at whole layers
  double step_seconds = 0;       ///< measured; the median of rows with identical inputs
  std::size_t repeats = 1;
  bool mixture = false;
  bool low_precision = false;   ///< 8- or 4-bit products
  std::string stack_stand_in;   ///< the stack whose constants price it, where its own has none
  std::string device_stand_in;  ///< the catalog's device that prices it, where the catalog lacks its own
};

/// Why a row cannot be priced, or nothing.
std::string convert(const Row& row, PublishedRun& run);

/// Throws std::runtime_error where the table lacks a column that every run needs.
void need_run_columns(const std::filesystem::path& path, const Table& table);

/// Rows with identical inputs become one with their median time, in order of first appearance.
std::vector<PublishedRun> merge_identical(std::vector<PublishedRun> runs);

/// Mean relative deviation of repeated rows from their median: the floor that noise sets.
struct RepeatNoise {
  std::size_t repeated = 0;
  double mean_deviation = 0;
};
RepeatNoise repeat_noise(const std::vector<PublishedRun>& runs);

}  // namespace published
