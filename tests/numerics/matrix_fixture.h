// Trains cases on one pool of ranks and keeps the single-process runs they are compared with.
#pragma once

#include <cstdio>
#include <exception>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tests/numerics/comparison.h"
#include "tests/numerics/placement_matrix.h"
#include "tests/numerics/training_outcome.h"
#include "tests/runtime/pool_fixture.h"

namespace runtime::numerics {

class MatrixTest : public PoolFixture<most_ranks> {
 protected:
  static void TearDownTestSuite() {
    references_.clear();
    PoolFixture<most_ranks>::TearDownTestSuite();
  }

  /// One process, the whole batch at once, of the same model.
  static const TrainingOutcome& reference(const TrainingCase& training) {
    TrainingCase single;
    single.model = training.model;
    single.tied = training.tied;
    single.fixed_layers = training.layers();
    single.precision = training.precision;
    single.gradient_precision = training.gradient_precision;
    single.optimizer = training.optimizer;
    single.dropout = training.dropout;
    single.attention_dropout = training.attention_dropout;
    single.attention = training.attention;
    single.gradient_clip = training.gradient_clip;
    single.steps = training.steps;
    single.warmup_steps = training.warmup_steps;
    single.initial_loss_scale = training.initial_loss_scale;
    single.loss_scale_window = training.loss_scale_window;
    single.spoiled_steps = training.spoiled_steps;
    const std::string key =
        fmt::format("{} layers {} steps {} warm-up {} scale {} window {} spoiled {}", single.name(),
                    single.layers(), single.steps, single.warmup_steps, single.initial_loss_scale,
                    single.loss_scale_window, single.spoiled_steps);
    const auto known = references_.find(key);
    if (known != references_.end()) return known->second;
    return references_.emplace(key, train(*pool_, single)).first->second;
  }

  static Differences differences(const TrainingCase& training, const TrainingOutcome& outcome) {
    return compare(outcome, reference(training), training.optimizer == specs::OptimizerKind::adamw);
  }

  /// To the single process, and in bytes communicated to the closed form.
  static Differences expect_equal(const TrainingCase& training) {
    const TrainingOutcome outcome = train(*pool_, training);
    const Differences found = differences(training, outcome);
    const std::string line = describe(training, found);
    std::printf("%s\n", line.c_str());
    EXPECT_TRUE(within(found, bars_for(training.precision))) << line << "\n " << describe_places(found);
    for (const std::string& defect : outcome.traffic_defects)
      ADD_FAILURE() << training.name() << ": " << defect;
    return found;
  }

  /// A line a placement, and the worst of all.
  static void expect_all_equal(const std::vector<TrainingCase>& cases) {
    WorstDifferences worst;
    for (const TrainingCase& training : cases) {
      try {
        worst.add(training, expect_equal(training));
      } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();
      }
    }
    std::printf("%s", worst.summary().c_str());
  }

  static inline std::map<std::string, TrainingOutcome> references_;
};

}  // namespace runtime::numerics
