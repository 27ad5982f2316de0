// Bytes that ZeRO puts on the wire in a step, counted at the call, against the closed forms.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/data_parallel/zero_job.h"
#include "tests/runtime/pool_fixture.h"

namespace runtime {
namespace {

using numerics::TinyModel;
using numerics::TrainingCase;

/// One bucket for each unit, so that padding is what a unit's size asks for.
TrainingCase replicas(TinyModel model, std::int64_t data, std::int64_t zero_stage,
                      std::int64_t micro_batches) {
  TrainingCase training;
  training.model = model;
  training.fixed_layers = 4;
  training.buckets.gradient_bucket_bytes = training.buckets.gather_bucket_bytes = 8192;
  training.optimizer = specs::OptimizerKind::adamw;
  training.data = data;
  training.tied = model == TinyModel::gpt;
  training.zero.stage = zero_stage;
  training.micro_batches = micro_batches;
  training.buckets.gradient_bucket_bytes = 0;
  return training;
}

/// Elements of each unit, from the model's sizes, rounded up to 16 for each rank.
std::map<std::int64_t, double> unit_elements(const TrainingCase& training) {
  const specs::ModelSpec model = model_of(training);
  const std::int64_t h = model.hidden, f = model.feed_forward.hidden;
  const std::int64_t kv = model.attention.kv_heads * model.attention.head_dim;
  const std::int64_t rows = (model.vocabulary + model.vocabulary_multiple - 1) / model.vocabulary_multiple *
                            model.vocabulary_multiple;
  const bool gpt = training.model == TinyModel::gpt;
  const std::int64_t q = model.attention.heads * model.attention.head_dim;
  const auto aligned = [](std::int64_t elements) { return (elements + 15) / 16 * 16; };  // of each block
  const std::int64_t projected = q + 2 * kv;
  const std::int64_t weights = aligned(projected * h) + aligned(q * h) + aligned(f * h);
  const std::int64_t block = gpt ? weights + aligned(f * h) + aligned(projected) + aligned(f) + 6 * aligned(h)
                                 : weights + aligned(2 * f * h) + 2 * aligned(h);
  std::map<std::int64_t, std::int64_t> units;
  units[0] = aligned(rows * h) + (gpt ? aligned(model.positions * h) + 2 * aligned(h) : 0);
  for (std::int64_t layer = 0; layer < model.layers; ++layer) units[1 + layer] = block;
  if (!gpt) units[1 + model.layers] = aligned(rows * h) + aligned(h);
  const std::int64_t multiple = 16 * training.data;
  std::map<std::int64_t, double> padded;
  for (const auto& [unit, elements] : units)
    padded[unit] = static_cast<double>((elements + multiple - 1) / multiple * multiple);
  return padded;
}

/// All elements of the buckets; the same but for a little padding under any bucket sizes.
double all_elements(const CountedStep& step) {
  double sum = 0;
  for (const std::int64_t elements : step.bucket_elements) sum += static_cast<double>(elements);
  return sum;
}

double bytes(const CountedStep& step, const std::string& key) {
  const auto found = step.wire_bytes.find(key);
  return found == step.wire_bytes.end() ? 0 : found->second;
}

class ZeroTraffic : public PoolFixture<4> {
 protected:
  static constexpr double half = 0.5;  ///< (n − 1) / n of two ranks
};

TEST_F(ZeroTraffic, WithoutShardsGradientsAreAllReducedOnceAStep) {
  for (const std::int64_t micro_batches : {1, 3})
    for (const CountedStep& step : count_step(*pool_, replicas(TinyModel::gpt, 2, 0, micro_batches))) {
      EXPECT_EQ(bytes(step, "gradient all_reduce Float"), 2 * half * 4 * all_elements(step));
      EXPECT_EQ(bytes(step, "shard reduce_scatter Float") + bytes(step, "shard all_gather Float"), 0);
    }
}

TEST_F(ZeroTraffic, Zero1ReducesGradientsAndGathersParametersOnceAStep) {
  for (const std::int64_t micro_batches : {1, 3}) {
    TrainingCase training = replicas(TinyModel::gpt, 2, 1, micro_batches);
    training.precision = specs::Precision::bf16;  // with fp32 gradients
    for (const CountedStep& step : count_step(*pool_, training)) {
      EXPECT_EQ(bytes(step, "shard reduce_scatter Float"), half * 4 * all_elements(step));
      EXPECT_EQ(bytes(step, "shard all_gather BFloat16"), half * 2 * all_elements(step));
    }
  }
}

TEST_F(ZeroTraffic, Zero2ReducesGradientsOfEachMicroBatchAndGathersParametersOnceAStep) {
  for (const std::int64_t micro_batches : {1, 3})
    for (const CountedStep& step : count_step(*pool_, replicas(TinyModel::llama, 2, 2, micro_batches))) {
      const double elements = all_elements(step);
      EXPECT_EQ(bytes(step, "shard reduce_scatter Float"),
                half * 4 * elements * static_cast<double>(micro_batches));
      EXPECT_EQ(bytes(step, "shard all_gather Float"), half * 4 * elements);
      EXPECT_EQ(bytes(step, "gradient all_reduce Float") + bytes(step, "replica all_reduce Float"), 0);
    }
}

TEST_F(ZeroTraffic, Zero3GathersEachUnitTwiceAndReducesItOnceForEachMicroBatch) {
  for (const TinyModel model : {TinyModel::gpt, TinyModel::llama})
    for (const std::int64_t micro_batches : {1, 3})
      for (const std::int64_t kept : {0, 2}) {
        TrainingCase training = replicas(model, 2, 3, micro_batches);
        training.zero.kept_units = kept;
        double elements = 0, gathered = 0;
        for (const auto& [unit, size] : unit_elements(training)) {
          elements += size;
          gathered += 2 * size;
        }
        const std::map<std::int64_t, double> units = unit_elements(training);
        // The embedding is gathered for its forward pass alone; GPT's table for the output layer besides.
        gathered += model == TinyModel::gpt ? units.at(0) : -units.at(0);
        if (kept == 2) gathered -= units.at(4) + (model == TinyModel::gpt ? units.at(0) : units.at(5));
        for (const CountedStep& step : count_step(*pool_, training)) {
          const auto times = static_cast<double>(micro_batches);
          EXPECT_EQ(all_elements(step), elements);
          EXPECT_EQ(bytes(step, "shard all_gather Float"), half * 4 * gathered * times) << training.name();
          EXPECT_EQ(bytes(step, "shard reduce_scatter Float"), half * 4 * elements * times);
        }
      }
}

TEST_F(ZeroTraffic, ShardsWithinTheNodeAreAllReducedOverTheNodesOnceAStep) {
  for (const std::int64_t stage : {1, 2, 3}) {
    TrainingCase training = replicas(TinyModel::llama, 4, stage, 3);
    training.zero.shard_ranks = 2;
    for (const CountedStep& step : count_step(*pool_, training)) {
      const double elements = all_elements(step);
      EXPECT_EQ(bytes(step, "replica all_reduce Float"), 2 * half * 4 * elements / 2) << "ZeRO " << stage;
      EXPECT_EQ(bytes(step, "shard reduce_scatter Float"), half * 4 * elements * (stage == 1 ? 1 : 3));
      EXPECT_EQ(bytes(step, "gradient all_reduce Float"), 0);
    }
  }
}

/// For each bucket that travels, the messages of its gradients over the tensor axis before.
std::vector<std::vector<std::int64_t>> sums_over_tensor_axis(const CountedStep& step) {
  std::vector<std::vector<std::int64_t>> sums;
  std::vector<std::int64_t> before;
  for (const auto& [call, bytes] : step.messages) {
    if (call == "tensor all_reduce") {
      before.push_back(bytes);
      continue;
    }
    if (call == "gradient all_reduce" || call == "shard reduce_scatter") sums.push_back(before);
    before.clear();
  }
  return sums;
}

TEST_F(ZeroTraffic, GradientsBelowThePlansLeastMessageAreSummedOverTheTensorAxisInOneABucket) {
  for (const std::int64_t stage : {0, 1, 2, 3}) {
    TrainingCase training = replicas(TinyModel::gpt, 2, stage, 1);
    training.tensor = 2;
    training.sequence_parallel = true;
    const std::int64_t norm_bytes = 4 * model_of(training).hidden;
    for (const std::int64_t least : {norm_bytes + 1, norm_bytes}) {
      training.buckets.minimum_message_bytes = least;
      bool several = false;
      for (const CountedStep& step : count_step(*pool_, training))
        for (const std::vector<std::int64_t>& sums : sums_over_tensor_axis(step)) {
          EXPECT_LE(std::count_if(sums.begin(), sums.end(), [&](auto bytes) { return bytes < least; }), 1);
          several |= std::count(sums.begin(), sums.end(), norm_bytes) > 1;
        }
      EXPECT_EQ(several, least == norm_bytes) << "ZeRO " << stage << ", least " << least;
    }
  }
}

TEST_F(ZeroTraffic, GradientsInBf16TravelAndAreKeptInHalfTheBytes) {
  TrainingCase training = replicas(TinyModel::llama, 2, 2, 3);
  training.precision = specs::Precision::bf16;
  training.gradient_precision = specs::Precision::bf16;
  for (const CountedStep& step : count_step(*pool_, training)) {
    EXPECT_EQ(bytes(step, "shard reduce_scatter BFloat16"), half * 2 * all_elements(step) * 3);
    EXPECT_EQ(step.peak_bytes.at("gradients"), static_cast<std::int64_t>(all_elements(step)));
  }
}

}  // namespace
}  // namespace runtime
