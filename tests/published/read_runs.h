// The rows of a file of published runs that the record is made of.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tests/published/published_run.h"

namespace published {

struct RunSet {
  std::vector<PublishedRun> runs;  ///< usable, confidence a or b, identical ones merged
  std::vector<std::pair<std::string, std::string>> unpriced;  ///< row id and reason
  RepeatNoise noise;
  std::size_t left_out = 0;  ///< rows that are not usable or of another confidence
};

RunSet read_runs(const std::filesystem::path& path);

}  // namespace published
