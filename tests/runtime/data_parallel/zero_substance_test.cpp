// What ZeRO 2 and 3 promise, by counters: how much is ever whole at once, and what travels when.
#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/data_parallel/zero_job.h"
#include "tests/runtime/pool_fixture.h"

namespace runtime {
namespace {

using numerics::TinyModel;
using numerics::TrainingCase;

TrainingCase replicas(std::int64_t zero_stage, std::int64_t micro_batches, TinyModel model = TinyModel::gpt) {
  TrainingCase training;
  training.model = model;
  training.fixed_layers = 4;
  training.buckets.gradient_bucket_bytes = training.buckets.gather_bucket_bytes = 8192;
  training.optimizer = specs::OptimizerKind::adamw;
  training.data = 2;
  training.tied = model == TinyModel::gpt;
  training.zero.stage = zero_stage;
  training.micro_batches = micro_batches;
  return training;
}

/// Placements in which a rank has several blocks: of every stage and shard scope, alone and beside the tensor
/// axis and a pipeline, under each precision of gradients.
std::vector<TrainingCase> with_several_blocks() {
  std::vector<TrainingCase> cases;
  for (const TinyModel model : {TinyModel::gpt, TinyModel::llama})
    for (const std::int64_t stage : {0, 1, 2, 3})
      for (const std::int64_t micro_batches : {1, 3}) cases.push_back(replicas(stage, micro_batches, model));
  for (const std::int64_t stage : {0, 1, 2, 3}) {
    TrainingCase beside_tensor = replicas(stage, 2);
    beside_tensor.tensor = 2;
    beside_tensor.sequence_parallel = true;
    cases.push_back(beside_tensor);
    TrainingCase narrow = replicas(stage, 2, TinyModel::llama);
    narrow.precision = narrow.gradient_precision = specs::Precision::bf16;
    cases.push_back(narrow);
    TrainingCase recomputed = replicas(stage, 2);
    recomputed.recomputation = specs::Recomputation::full;
    cases.push_back(recomputed);
    if (stage == 0) continue;
    TrainingCase within_nodes = replicas(stage, 2);
    within_nodes.data = 4;
    within_nodes.micro_batches = 3;
    within_nodes.zero = {.stage = stage, .scope = specs::ShardScope::node, .shard_ranks = 2};
    cases.push_back(within_nodes);
  }
  for (const std::int64_t stage : {0, 1}) {
    TrainingCase beside_pipeline = replicas(stage, 3, TinyModel::llama);
    beside_pipeline.pipeline = 2;
    beside_pipeline.micro_batches = 4;
    cases.push_back(beside_pipeline);
  }
  return cases;
}

std::int64_t gradient_bytes(const TrainingCase& training) {
  return training.gradient_precision == specs::Precision::bf16 ? 2 : 4;
}

std::size_t first(const std::vector<std::string>& events, const std::string& prefix) {
  return static_cast<std::size_t>(
      std::find_if(events.begin(), events.end(),
                   [&](const std::string& event) { return event.starts_with(prefix); }) -
      events.begin());
}

std::int64_t sum(const std::vector<std::int64_t>& values) {
  return std::accumulate(values.begin(), values.end(), std::int64_t{0});
}

constexpr std::int64_t most_units = 1000;

class ZeroSubstance : public PoolFixture<4> {};

/// The events of each backward pass of a micro-batch, up to the one of the rank's first block.
std::vector<std::vector<std::string>> backward_passes(const std::vector<std::string>& events) {
  std::int64_t first_block = most_units;
  for (const std::string& event : events)
    if (event.starts_with("forward ") && event != "forward 0")
      first_block = std::min<std::int64_t>(first_block, std::stoll(event.substr(8)));
  std::vector<std::vector<std::string>> passes;
  std::vector<std::string> pass;
  for (const std::string& event : events) {
    if (event.starts_with("forward ") && pass.empty()) continue;
    pass.push_back(event);
    if (event != fmt::format("backward {}", first_block)) continue;
    // A pass begins with the backward of the last unit.
    pass.erase(pass.begin(), pass.begin() + static_cast<std::ptrdiff_t>(first(pass, "backward")));
    passes.push_back(std::exchange(pass, {}));
  }
  return passes;
}

TEST_F(ZeroSubstance, TheFirstReductionStartsBeforeTheBackwardOfTheLastBlockToRun) {
  for (const TrainingCase& training : with_several_blocks())
    for (const CountedStep& step : count_step(*pool_, training)) {
      const std::vector<std::vector<std::string>> passes = backward_passes(step.events);
      ASSERT_EQ(std::ssize(passes), training.micro_batches) << training.name();
      for (std::int64_t i = 0; i < training.micro_batches; ++i) {
        // What is not sharded travels with the last micro-batch alone.
        const bool travels = training.zero.stage >= 2 || i + 1 == training.micro_batches;
        const auto& pass = passes[static_cast<std::size_t>(i)];
        const std::size_t at = first(pass, "reduce");
        EXPECT_EQ(at < pass.size(), travels) << training.name() << ", micro-batch " << i;
        // Buckets are numbered as they become complete.
        if (at < pass.size()) {
          EXPECT_EQ(pass[at], "reduce 0") << training.name() << ", micro-batch " << i;
        }
      }
    }
}

TEST_F(ZeroSubstance, AfterEachBackwardNothingTravelsOnWhereAskedToSynchronise) {
  for (const std::int64_t stage : {0, 1}) {
    TrainingCase training = replicas(stage, 2);
    for (const CountedStep& step : count_step(*pool_, training)) EXPECT_GT(step.most_travelling, 0);
    training.debug_synchronise = true;
    for (const CountedStep& step : count_step(*pool_, training)) {
      EXPECT_EQ(step.most_travelling, 0);
      EXPECT_LT(first(step.events, "reduce"), step.events.size());
    }
  }
}

TEST_F(ZeroSubstance, WithoutOverlapNothingIsReducedBeforeTheEnd) {
  TrainingCase training = replicas(1, 1);
  training.overlap_reduction = false;
  for (const CountedStep& step : count_step(*pool_, training))
    EXPECT_GT(first(step.events, "reduce"), first(step.events, "backward 1"));
}

TEST_F(ZeroSubstance, ShardedGradientsAreWholeOnlyInTheBucketThatIsFilledAndTheOneThatTravels) {
  for (TrainingCase training : with_several_blocks())
    for (const bool overlap : {true, false}) {
      if (training.zero.stage < 2) continue;
      training.overlap_reduction = overlap;
      // The tied table of GPT is filled from one end of the backward pass to the other.
      const std::int64_t tied = training.tied ? 1 : 0;
      // Beside the tensor axis also the message that sums what is partial over it: less than a bucket.
      const std::int64_t messages = training.tensor > 1 ? 1 : 0;
      const std::int64_t bytes = gradient_bytes(training);
      for (const CountedStep& step : count_step(*pool_, training)) {
        SCOPED_TRACE(training.name());
        ASSERT_GT(step.bucket_elements.size(), 4U);
        EXPECT_EQ(step.peak_whole_buckets, (overlap ? 2 : 1) + tied);
        EXPECT_EQ(step.whole_gradients_left, 0);
        std::vector<std::int64_t> largest = step.bucket_elements;
        std::sort(largest.rbegin(), largest.rend());
        const std::int64_t most =
            std::accumulate(largest.begin(), largest.begin() + 2 + tied + messages, 0LL);
        EXPECT_LE(step.peak_bytes.at("communication_buckets"), bytes * most);
        EXPECT_GE(step.peak_bytes.at("communication_buckets"), bytes * largest[0]);
        EXPECT_EQ(step.peak_bytes.at("gradients"), bytes * sum(step.bucket_elements) / 2);
      }
    }
}

TEST_F(ZeroSubstance, WholeGradientsAreHeldThroughoutWhereTheyAreNotSharded) {
  for (const CountedStep& step : count_step(*pool_, replicas(1, 2))) {
    EXPECT_EQ(step.peak_whole_buckets, 0);
    EXPECT_EQ(step.peak_bytes.at("gradients"), 4 * sum(step.bucket_elements));
  }
}

/// Bytes of the n largest units.
std::int64_t largest_units(const CountedStep& step, std::int64_t n) {
  std::map<std::int64_t, std::int64_t> elements;
  for (std::size_t i = 0; i < step.bucket_units.size(); ++i)
    elements[step.bucket_units[i]] += step.bucket_elements[i];
  std::vector<std::int64_t> largest;
  for (const auto& [unit, count] : elements) largest.push_back(4 * count);
  std::sort(largest.rbegin(), largest.rend());
  largest.resize(std::min(largest.size(), static_cast<std::size_t>(n)));
  return sum(largest);
}

TEST_F(ZeroSubstance, NeverMoreThanThePrefetchAndOneUnitsAreGathered) {
  for (const TinyModel model : {TinyModel::gpt, TinyModel::llama})
    for (const specs::Recomputation recomputation : {specs::Recomputation::none, specs::Recomputation::full})
      for (const std::int64_t prefetch : {0, 1, 3})
        for (const std::int64_t kept : {0, 1, 2}) {
          TrainingCase training = replicas(3, 2, model);
          training.recomputation = recomputation;
          training.buckets.prefetch_units = prefetch;
          training.zero.kept_units = kept;
          for (const CountedStep& step : count_step(*pool_, training)) {
            EXPECT_EQ(step.peak_gathered_units, prefetch + 1) << training.name();
            EXPECT_EQ(step.whole_parameters_left, 0);
            EXPECT_EQ(step.peak_bytes.at("parameters"), 4 * sum(step.bucket_elements) / 2);
            EXPECT_LE(step.peak_bytes.at("gathered_parameters"), largest_units(step, prefetch + 1 + kept));
            EXPECT_GE(step.peak_bytes.at("gathered_parameters"), largest_units(step, 1));
            // 4 blocks and the output layer twice, the embedding once, for each of 2 micro-batches.
            EXPECT_EQ(step.gathers, 2 * (2 * 5 + 1 - kept)) << training.name();
          }
        }
}

TEST_F(ZeroSubstance, NoSmallTensorTravelsAlone) {
  for (const std::int64_t stage : {0, 1, 2, 3})
    for (const std::int64_t bucket_bytes : {1, 8192}) {
      TrainingCase training = replicas(stage, 1);
      training.buckets.gradient_bucket_bytes = bucket_bytes;
      for (const CountedStep& step : count_step(*pool_, training))
        for (const std::int64_t elements : step.bucket_elements)
          EXPECT_GE(elements * 4, training.buckets.minimum_message_bytes) << "ZeRO " << stage;
    }
}

/// NVIDIA/Megatron-LM#844: scattered before they are summed over the stages, the copies would be 7 and 9.
TEST_F(ZeroSubstance, CopiesOfATiedTableAreSummedBeforeTheyAreScattered) {
  for (const char* stage : {"0", "1"})
    for (const std::string& mean : values("tied", stage, 4)) EXPECT_EQ(std::stod(mean), 8) << stage;
}

/// The counted step is the second: it sees what the first has made of the parameters.
TEST_F(ZeroSubstance, EveryStageTakesTheSameSteps) {
  for (const std::int64_t shard_ranks : {0, 2}) {
    TrainingCase training = replicas(0, 1);
    training.data = 4;
    const CountedStep whole = count_step(*pool_, training).front();
    training.zero.shard_ranks = shard_ranks;
    for (training.zero.stage = 1; training.zero.stage <= 3; ++training.zero.stage)
      for (const CountedStep& step : count_step(*pool_, training)) {
        EXPECT_NEAR(step.loss, whole.loss, 1e-6 * whole.loss) << training.name();
        EXPECT_NEAR(step.gradient_norm, whole.gradient_norm, 1e-5 * whole.gradient_norm) << training.name();
      }
  }
}

TEST_F(ZeroSubstance, SynchronisingOrNotTheStepIsTheSame) {
  TrainingCase training = replicas(3, 2);
  const std::vector<CountedStep> with = count_step(*pool_, training);
  training.overlap_reduction = false;
  const std::vector<CountedStep> without = count_step(*pool_, training);
  EXPECT_EQ(with.front().loss, without.front().loss);
  EXPECT_EQ(with.front().gradient_norm, without.front().gradient_norm);
}

}  // namespace
}  // namespace runtime
