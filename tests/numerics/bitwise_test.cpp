// What must not move a single bit: the order of independent work, recomputation, overlap, and where the
// optimizer's state lies. Clipping is off, since a norm summed in another order moves the last bit.
#include <vector>

#include "tests/numerics/matrix_fixture.h"

namespace runtime::numerics {
namespace {

class Bitwise : public MatrixTest {
 protected:
  static TrainingCase base(std::int64_t tensor, std::int64_t pipeline, std::int64_t data) {
    TrainingCase training;
    training.optimizer = specs::OptimizerKind::adamw;
    training.tensor = tensor;
    training.pipeline = pipeline;
    training.data = data;
    training.micro_batches = 4;
    training.gradient_clip = 0;
    return training;
  }

  static void expect_same(const TrainingCase& a, const TrainingCase& b) {
    const TrainingOutcome first = train(*pool_, a);
    const TrainingOutcome second = train(*pool_, b);
    EXPECT_EQ(first.losses, second.losses) << a.name() << " and " << b.name();
    EXPECT_TRUE(first.gradients == second.gradients) << a.name() << " and " << b.name();
    EXPECT_TRUE(first.weights == second.weights) << a.name() << " and " << b.name();
  }
};

TEST_F(Bitwise, TheSameRunTwiceIsTheSame) { expect_same(base(2, 2, 1), base(2, 2, 1)); }

TEST_F(Bitwise, SchedulesAreTheSame) {
  for (const specs::ScheduleKind kind : {specs::ScheduleKind::gpipe, specs::ScheduleKind::zero_bubble_h1}) {
    TrainingCase other = base(1, 2, 1);
    other.schedule = kind;
    expect_same(base(1, 2, 1), other);
  }
  TrainingCase plain = base(1, 2, 1);
  plain.fixed_layers = 4;
  TrainingCase interleaved = plain;
  interleaved.schedule = specs::ScheduleKind::interleaved;
  interleaved.virtual_stages = 2;
  expect_same(plain, interleaved);
}

TEST_F(Bitwise, RecomputationWithDropoutChangesNothing) {
  for (const auto attention :
       {specs::AttentionImplementation::flash, specs::AttentionImplementation::unfused})
    for (const double attention_dropout : {0.0, 0.1})
      for (const auto recomputation : {specs::Recomputation::full, specs::Recomputation::selective}) {
        TrainingCase plain = base(2, 1, 1);
        plain.dropout = 0.1;
        plain.attention_dropout = attention_dropout;
        plain.attention = attention;
        TrainingCase again = plain;
        again.recomputation = recomputation;
        expect_same(plain, again);
      }
}

TEST_F(Bitwise, OverlapOfTheReductionChangesNothing) {
  TrainingCase late = base(1, 1, 2);
  late.overlap_reduction = false;
  expect_same(base(1, 1, 2), late);
}

/// dp 2 with as many micro-batches a replica.
TrainingCase two_replicas(std::int64_t zero_stage, std::int64_t micro_batches) {
  TrainingCase training;
  training.optimizer = specs::OptimizerKind::adamw;
  training.data = 2;
  training.zero.stage = zero_stage;
  training.micro_batches = micro_batches;
  training.gradient_clip = 0;
  return training;
}

class BitwiseZero : public Bitwise {
 protected:
  static void expect_same_under_any_accumulation(std::int64_t zero_stage, std::int64_t other_stage) {
    for (const specs::Precision precision : {specs::Precision::fp32, specs::Precision::bf16})
      for (const std::int64_t micro_batches : {1, 2, 6}) {
        TrainingCase training = two_replicas(zero_stage, micro_batches);
        training.precision = precision;
        TrainingCase other = training;
        other.zero.stage = other_stage;
        expect_same(training, other);
      }
  }
};

TEST_F(BitwiseZero, ShardedOptimizerStatesChangeNothing) { expect_same_under_any_accumulation(0, 1); }

TEST_F(BitwiseZero, EveryZeroStageIsTheSameWithoutAccumulation) {
  for (const TinyModel model : {TinyModel::gpt, TinyModel::llama})
    for (const specs::Precision precision : {specs::Precision::fp32, specs::Precision::bf16})
      for (const std::int64_t stage : {1, 2, 3}) {
        TrainingCase whole = two_replicas(0, 1);
        whole.model = model;
        whole.precision = precision;
        TrainingCase sharded = whole;
        sharded.zero.stage = stage;
        expect_same(whole, sharded);
      }
}

TEST_F(BitwiseZero, ShardedParametersAreThoseOfShardedGradients) { expect_same_under_any_accumulation(2, 3); }

TEST_F(BitwiseZero, PrefetchKeptUnitsRecomputationAndSynchronisingChangeNothing) {
  TrainingCase plain = two_replicas(3, 2);
  plain.dropout = 0.1;
  for (const std::int64_t prefetch : {0, 3})
    for (const std::int64_t kept : {0, 2, 9}) {
      TrainingCase other = plain;
      other.buckets.prefetch_units = prefetch;
      other.zero.kept_units = kept;
      expect_same(plain, other);
    }
  TrainingCase recomputed = plain, synchronised = plain, one_by_one = plain;
  recomputed.recomputation = specs::Recomputation::full;
  expect_same(plain, recomputed);
  synchronised.debug_synchronise = true;
  expect_same(plain, synchronised);
  one_by_one.overlap_reduction = false;
  expect_same(plain, one_by_one);
}

TEST_F(Bitwise, WhereTheOptimizersStateLiesChangesNothing) {
  const auto expect_same_offloaded = [](TrainingCase on_device) {
    for (const std::int64_t eighths : {3, 8}) {
      TrainingCase offloaded = on_device;
      offloaded.offload.optimizer = {specs::OffloadDevice::cpu, eighths};
      expect_same(on_device, offloaded);
    }
  };
  for (const std::int64_t zero_stage : {0, 1, 2, 3})
    for (const specs::Precision precision :
         {specs::Precision::fp32, specs::Precision::bf16, specs::Precision::fp16}) {
      TrainingCase training = base(1, 1, 2);
      training.zero.stage = zero_stage;
      training.precision = precision;
      expect_same_offloaded(training);
    }
  TrainingCase momentum = base(2, 2, 1);
  momentum.optimizer = specs::OptimizerKind::sgd;
  expect_same_offloaded(momentum);
  TrainingCase clipped = base(1, 2, 2);
  clipped.gradient_clip = 0.5;
  clipped.zero.stage = 1;
  expect_same_offloaded(clipped);
}

}  // namespace
}  // namespace runtime::numerics
