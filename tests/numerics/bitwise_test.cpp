// What must not move a single bit: the order of independent work, recomputation, overlap, and where the
// optimizer's state lies. Clipping is off, since a norm summed in another order moves the last bit.
#include <cstddef>
#include <vector>

#include "runtime/capabilities.h"
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

  static void expect_same(const TrainingCase& a, const TrainingCase& b, WorkerPool& pool = *pool_) {
    const TrainingOutcome first = train(pool, a);
    const TrainingOutcome second = train(pool, b);
    EXPECT_EQ(first.losses, second.losses) << a.name() << " and " << b.name();
    EXPECT_TRUE(first.gradients == second.gradients) << a.name() << " and " << b.name();
    EXPECT_TRUE(first.weights == second.weights) << a.name() << " and " << b.name();
  }
};

TEST_F(Bitwise, TheSameRunTwiceIsTheSame) {
  TrainingCase sharded = base(2, 1, 4);
  sharded.micro_batches = 3;
  sharded.zero = {.stage = 3, .scope = specs::ShardScope::node, .shard_ranks = 2};
  sharded.dropout = sharded.attention_dropout = 0.1;
  sharded.recomputation = specs::Recomputation::full;
  TrainingCase offloaded = base(1, 2, 3);
  offloaded.zero.stage = 1;
  offloaded.offload = {.optimizer = {specs::OffloadDevice::cpu, 8}, .delayed_update = true};
  for (const TrainingCase& training : {base(2, 2, 1), sharded, offloaded})
    for (const specs::Precision precision :
         {specs::Precision::fp64, specs::Precision::fp32, specs::Precision::bf16, specs::Precision::fp16}) {
      TrainingCase twice = training;
      twice.precision = precision;
      expect_same(twice, twice);
    }
}

/// The same without what must not move a bit: the schedule, recomputation, offload, overlap, synchronising,
/// prefetch, kept units, and between two replicas the shards of what is not summed in another order.
TrainingCase without_what_changes_nothing(TrainingCase training) {
  // Among more ranks a sum goes around a ring that begins elsewhere for each part of a bucket, and whole
  // stages or units make other buckets.
  const bool two_summands = training.data <= 2 && training.tensor <= 2;
  if (training.virtual_stages == 1) {
    training.schedule = specs::ScheduleKind::one_forward_one_backward;
  } else if (two_summands && training.cut == Cut::even) {
    training.fixed_layers = training.layers();
    training.schedule = specs::ScheduleKind::gpipe;
    training.virtual_stages = 1;
  }
  training.recomputation = specs::Recomputation::none;
  training.recomputed_layers = RecomputedLayers::all;
  training.offload = {};
  training.overlap_reduction = true;
  training.debug_synchronise = false;
  training.buckets.prefetch_units = 1;
  training.zero.kept_units = 0;
  if (two_summands && training.zero.scope == specs::ShardScope::world)
    training.zero.stage -= training.zero.stage % 2;
  return training;
}

class BitwisePairs : public Bitwise {
 protected:
  /// Of the pairs of features every n-th.
  static void expect_same_without(specs::Precision precision, std::size_t every) {
    std::vector<TrainingCase> cases;
    const std::vector<TrainingCase> pairs = paired_placements(capabilities(), 1);
    for (std::size_t i = 0; i < pairs.size(); i += every) {
      if (pairs[i].offload.delayed_update) continue;
      cases.push_back(pairs[i]);
      cases.back().precision = precision;
      cases.back().gradient_clip = 0;
    }
    for_each_case(cases, [&](std::size_t index, WorkerPool& pool) {
      expect_same(cases[index], without_what_changes_nothing(cases[index]), pool);
    });
  }
};
class NightlyBitwisePairs : public BitwisePairs {};

TEST_F(BitwisePairs, AreTheSameWithoutWhatChangesNothing) { expect_same_without(specs::Precision::fp32, 5); }

TEST_F(NightlyBitwisePairs, AllAreTheSameWithoutWhatChangesNothingInEveryPrecision) {
  for (const specs::Precision precision :
       {specs::Precision::fp64, specs::Precision::fp32, specs::Precision::bf16, specs::Precision::fp16})
    expect_same_without(precision, 1);
}

TEST_F(Bitwise, SchedulesAreTheSame) {
  const auto expect_same_under_all = [](TrainingCase plain) {
    for (const specs::ScheduleKind kind : {specs::ScheduleKind::gpipe, specs::ScheduleKind::zero_bubble_h1}) {
      TrainingCase other = plain;
      other.schedule = kind;
      expect_same(plain, other);
    }
    for (const std::int64_t virtual_stages : {2, 3}) {
      plain.fixed_layers = plain.pipeline * virtual_stages;
      TrainingCase interleaved = plain;
      interleaved.schedule = specs::ScheduleKind::interleaved;
      interleaved.virtual_stages = virtual_stages;
      expect_same(plain, interleaved);
    }
  };
  for (const specs::Precision precision :
       {specs::Precision::fp64, specs::Precision::fp32, specs::Precision::bf16, specs::Precision::fp16}) {
    TrainingCase plain = base(1, 2, 1);
    plain.precision = precision;
    expect_same_under_all(plain);
  }
  TrainingCase sharded = base(1, 2, 2);
  sharded.zero.stage = 1;
  sharded.dropout = 0.1;
  expect_same_under_all(sharded);
  TrainingCase deep = base(2, 4, 1);
  deep.model = TinyModel::llama;
  deep.tied = false;
  deep.sequence_parallel = true;
  deep.micro_batches = 8;
  for (const bool synchronises : {false, true})
    for (const specs::ScheduleKind kind :
         {specs::ScheduleKind::gpipe, specs::ScheduleKind::zero_bubble_h1, deep.schedule}) {
      TrainingCase other = deep;
      other.schedule = kind;
      other.debug_synchronise = synchronises;
      expect_same(deep, other);
    }
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
    const auto expect = [&](const TrainingCase& training) {
      TrainingCase other = training;
      other.zero.stage = other_stage;
      expect_same(training, other);
    };
    for (const specs::Precision precision :
         {specs::Precision::fp64, specs::Precision::fp32, specs::Precision::bf16, specs::Precision::fp16})
      for (const std::int64_t micro_batches : {1, 2, 3, 6}) {
        TrainingCase training = two_replicas(zero_stage, micro_batches);
        training.precision = precision;
        expect(training);
      }
    TrainingCase narrow = two_replicas(zero_stage, 3);
    narrow.precision = narrow.gradient_precision = specs::Precision::bf16;
    expect(narrow);
    TrainingCase beside_tensor = two_replicas(zero_stage, 3);
    beside_tensor.model = TinyModel::llama;
    beside_tensor.tensor = 2;
    beside_tensor.sequence_parallel = true;
    expect(beside_tensor);
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
