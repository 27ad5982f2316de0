// Trains cases on one pool of ranks and keeps the single-process runs they are compared with.
#pragma once

#include <cstdio>
#include <map>
#include <string>

#include "tests/numerics/comparison.h"
#include "tests/numerics/training_outcome.h"
#include "tests/runtime/pool_fixture.h"

namespace runtime::numerics {

class MatrixTest : public PoolFixture<4> {
 protected:
  static void TearDownTestSuite() {
    references_.clear();
    PoolFixture<4>::TearDownTestSuite();
  }

  /// One process, the whole batch at once.
  static const TrainingOutcome& reference(const TrainingCase& training) {
    TrainingCase single;
    single.model = training.model;
    single.precision = training.precision;
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
    const std::string key = to_bytes(single);
    const auto known = references_.find(key);
    if (known != references_.end()) return known->second;
    return references_.emplace(key, train(*pool_, single)).first->second;
  }

  static Differences differences(const TrainingCase& training) {
    const TrainingOutcome& expected = reference(training);
    return compare(train(*pool_, training), expected, training.optimizer == specs::OptimizerKind::adamw);
  }

  static void expect_equal(const TrainingCase& training) {
    const Differences found = differences(training);
    const std::string line = describe(training, found);
    std::printf("%s\n", line.c_str());
    EXPECT_TRUE(within(found, bars_for(training.precision)))
        << line << "\n largest gradient difference in " << found.gradient_name << ", weight in "
        << found.weight_name;
  }

  static inline std::map<std::string, TrainingOutcome> references_;
};

}  // namespace runtime::numerics
