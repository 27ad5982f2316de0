#include "cost_models/memory.h"

#include <gtest/gtest.h>

#include "cost_models/estimate.h"
#include "tests/cost_models/model_fixtures.h"

namespace cost_models {
namespace {

using specs::MemoryClass;
using testing::experiment;
using testing::gpt;
using testing::llama;

constexpr double gib = 1024.0 * 1024 * 1024;

double device_bytes(const specs::CostBreakdown& cost, std::initializer_list<MemoryClass> classes,
                    std::int64_t pipeline_rank = 0) {
  double sum = 0;
  for (const specs::MemoryEntry& entry : cost.memory)
    for (const MemoryClass each : classes)
      if (entry.memory_class == each && entry.pipeline_rank == pipeline_rank &&
          entry.location == specs::MemoryLocation::device)
        sum += static_cast<double>(entry.bytes);
  return sum;
}

constexpr std::initializer_list<MemoryClass> model_states{MemoryClass::parameters, MemoryClass::gradients,
                                                          MemoryClass::optimizer_state,
                                                          MemoryClass::master_weights};

TEST(Memory, MegatronKeepsSixBytesWholeAndShardsTwelve) {
  const specs::ModelSpec model = llama(32, 4096, 32, 32, 11008, 32000);
  const Estimator estimator(experiment(model, 8, 64, 4096));
  for (const auto& [data, expected] :
       {std::pair{1, 112.96}, {2, 75.31}, {4, 56.48}, {8, 47.07}, {64, 38.83}}) {
    specs::RegularPlacement placement;
    placement.data = data;
    placement.zero.stage = 1;
    const auto cost = estimator.estimate(specs::regular_placement(placement, model.layers));
    EXPECT_NEAR(device_bytes(cost, model_states) / gib, expected, 0.001 * expected) << data;
    placement.zero.stage = 0;
    EXPECT_NEAR(
        device_bytes(estimator.estimate(specs::regular_placement(placement, model.layers)), model_states) /
            gib,
        112.96, 0.12);
    EXPECT_FALSE(estimator.fits(estimator.quick(placement)));
  }
}

TEST(Memory, SelectiveRecomputationSavesWhatFlashAttentionNeverKept) {
  specs::Experiment run = experiment(gpt(96, 12288, 96, 51200, 2048), 1, 8, 2048);
  const auto kept = [&](specs::AttentionImplementation attention) {
    run.training.attention = attention;
    const CostInputs inputs = make_cost_inputs(run, stack_profile(run.training), ConstantTable::built_in());
    return layer_activations(inputs, {}, 1, 1);
  };
  const LayerActivations unfused = kept(specs::AttentionImplementation::unfused);
  const double all = unfused.attention + unfused.feed_forward;
  // 5 a s / h = 80 of 34 + 80 units of h bytes in the literature, which counts dropout masks that this recipe
  // lacks.
  EXPECT_NEAR(unfused.scores / 12288, 80, 0.01);
  EXPECT_NEAR(unfused.scores / all, 80.0 / 112, 0.01);
  const LayerActivations flash = kept(specs::AttentionImplementation::flash);
  EXPECT_EQ(flash.scores, 0);
}

TEST(Memory, LlamaLayerKeepsSixteenHiddenAndSixInnerElements) {
  specs::Experiment run = experiment(llama(32, 4096, 32, 32, 11008, 32000), 1, 2, 4096);
  const CostInputs inputs = make_cost_inputs(run, stack_profile(run.training), ConstantTable::built_in());
  const LayerActivations layer = layer_activations(inputs, {}, 1, 1);
  const double tokens = 2 * 4096;
  EXPECT_NEAR((layer.attention + layer.feed_forward) * tokens, 1'077'936'128, 0.01 * 1'077'936'128);
  EXPECT_NEAR(layer.layer_input * tokens, 2.0 * 4096 * tokens, 1);
}

TEST(Memory, FirstRankHoldsTheActivationsAndTheLastTheLogits) {
  const specs::ModelSpec model = llama(32, 4096, 32, 32, 11008, 32000);
  const Estimator estimator(experiment(model, 1, 8, 4096));
  specs::RegularPlacement placement;
  placement.pipeline = 4;
  placement.accumulation = 8;
  const auto cost = estimator.estimate(specs::regular_placement(placement, model.layers));
  const double last = device_bytes(cost, {MemoryClass::activations}, 3);
  for (int rank = 0; rank < 4; ++rank)
    EXPECT_NEAR(device_bytes(cost, {MemoryClass::activations}, rank), (4 - rank) * last, 1e-6 * last);
}

TEST(Memory, TinyGptOfThisRuntimeMatchesTheCountedBytes) {
  // 4 layers, hidden 256, 8 heads, 4 sequences of 256 tokens, fp32: 86.1 MB were counted alive after the
  // forward pass with separate log-probabilities of 16.8 MB; without them 69.3 MB.
  specs::ModelSpec model = gpt(4, 256, 8, 4096, 256);
  model.vocabulary_multiple = 1;
  model.tied_embeddings = false;
  specs::Experiment run = experiment(model, 1, 4, 256, "dsrun");
  run.training.precision = specs::Precision::fp32;
  run.cluster.groups.front().node.device.generation = "cpu";
  specs::RegularPlacement placement;
  placement.micro_batch = 4;
  const auto cost = Estimator(run).estimate(specs::regular_placement(placement, 4));
  EXPECT_NEAR(device_bytes(cost, {MemoryClass::activations}) / 1e6, 69.3, 0.7);
  const double states = device_bytes(cost, model_states);
  EXPECT_NEAR(states, 16.0 * 5.32e6, 0.01 * states);
  EXPECT_EQ(device_bytes(cost, {MemoryClass::framework_context, MemoryClass::allocator_slack}), 0);
}

TEST(Memory, SelectiveRecomputationOfThisRuntimeSavesTheSoftmaxOfUnfusedAttentionAndNothingUnderFlash) {
  specs::Experiment run = experiment(gpt(4, 256, 8, 256, 1024), 1, 4, 1024, "dsrun");
  run.training.precision = specs::Precision::fp32;
  run.cluster.groups.front().node.device.generation = "cpu";
  specs::RegularPlacement kept, selective;
  kept.micro_batch = selective.micro_batch = 4;
  selective.recomputation = specs::Recomputation::selective;
  const auto cost = [&](const specs::RegularPlacement& placement) {
    return Estimator(run).estimate(specs::regular_placement(placement, 4));
  };
  run.training.attention = specs::AttentionImplementation::flash;
  EXPECT_EQ(cost(kept).peak_device_bytes, cost(selective).peak_device_bytes);
  EXPECT_EQ(cost(kept).step_seconds, cost(selective).step_seconds);
  run.training.attention = specs::AttentionImplementation::unfused;
  // Of four layers' softmax, one is there again while its layer runs backward.
  const double softmax = 4.0 * 4 * 8 * 1024 * 1024;
  EXPECT_NEAR(static_cast<double>(cost(kept).peak_device_bytes - cost(selective).peak_device_bytes),
              3 * softmax, 16);
  EXPECT_LT(cost(kept).step_seconds, cost(selective).step_seconds);
}

TEST(Memory, NoTermOfTheTimeOnACpuIsNegative) {
  for (const std::int64_t micro_batch : {1, 2, 4, 8})
    for (const std::int64_t length : {128, 256, 512, 1024}) {
      specs::Experiment run = experiment(gpt(4, 256, 8, 256, length), 2, 16, length, "dsrun");
      run.cluster.groups.front().node.device.generation = "cpu";
      specs::RegularPlacement placement;
      placement.data = 2;
      placement.micro_batch = micro_batch;
      placement.accumulation = 8 / micro_batch;
      for (const specs::TimeEntry& entry :
           Estimator(run).estimate(specs::regular_placement(placement, 4)).time)
        EXPECT_GE(entry.exposed_seconds, 0) << micro_batch << " of " << length;
    }
}

TEST(Memory, WhatThisRuntimeOffloadsLeavesTheDeviceAndHasCopiesOnTheHost) {
  specs::Experiment run = experiment(gpt(4, 256, 8, 4096, 256), 1, 4, 256, "dsrun");
  run.cluster.groups.front().node.device.generation = "cpu";
  const auto bytes = [&](const specs::CostBreakdown& cost, specs::MemoryLocation location,
                         MemoryClass memory_class) {
    std::int64_t sum = 0;
    for (const specs::MemoryEntry& entry : cost.memory)
      if (entry.location == location && entry.memory_class == memory_class) sum += entry.bytes;
    return sum;
  };
  for (const auto& [precision, masters] :
       {std::pair{specs::Precision::fp32, 0}, {specs::Precision::bf16, 4}}) {
    run.training.precision = precision;
    const Estimator estimator(run);
    specs::RegularPlacement placement;
    placement.micro_batch = 4;
    const auto resident = estimator.estimate(specs::regular_placement(placement, 4));
    placement.offload.optimizer = {specs::OffloadDevice::cpu, 6};
    const auto offloaded = estimator.estimate(specs::regular_placement(placement, 4));
    const auto on = [&](specs::MemoryLocation location, MemoryClass memory_class) {
      return bytes(offloaded, location, memory_class);
    };
    const std::int64_t moments = bytes(resident, specs::MemoryLocation::device, MemoryClass::optimizer_state);
    const std::int64_t moved = moments / 8 * 6 / 8;
    EXPECT_NEAR(resident.peak_device_bytes - offloaded.peak_device_bytes, (8 + masters) * moved, 16);
    EXPECT_NEAR(on(specs::MemoryLocation::host, MemoryClass::optimizer_state), 8 * moved, 8);
    EXPECT_NEAR(on(specs::MemoryLocation::host, MemoryClass::master_weights), 4 * moved, 8);
    EXPECT_NEAR(on(specs::MemoryLocation::host, MemoryClass::gradients), 4 * moved, 8);
    EXPECT_EQ(on(specs::MemoryLocation::host_pinned, MemoryClass::offload_staging), 0);
  }
}

TEST(Memory, OffloadedOptimizerLivesOnTheHostWithItsPinnedBuffers) {
  const specs::ModelSpec model = llama(32, 4096, 32, 32, 11008, 32000);
  const Estimator estimator(experiment(model, 1, 8, 4096));
  specs::RegularPlacement placement;
  placement.data = 8;
  placement.zero.stage = 1;
  const QuickCost resident = estimator.quick(placement);
  placement.offload.optimizer = {specs::OffloadDevice::cpu, 8};
  const QuickCost offloaded = estimator.quick(placement);
  EXPECT_LT(offloaded.peak_device_bytes, resident.peak_device_bytes - 9'000'000'000);
  EXPECT_GT(offloaded.peak_host_bytes_per_node, 12 * 6'738'415'616);
  EXPECT_GT(offloaded.step_seconds, resident.step_seconds);
}

// FSDP2 on 8 devices. ZeRO-3 keeps 16/8 bytes a parameter between the steps; ZeRO-2 (reshard_after_forward
// off) the same, and all parameters in bf16 from the forward to the backward pass.
TEST(Memory, Fsdp2ShardsEverythingFromTheSecondStageOnAndKeepsTheGatheredParametersThere) {
  const specs::ModelSpec model = llama(32, 4096, 32, 32, 11008, 32000);
  for (const char* stack : {"fsdp2", "torchtitan", "composer-fsdp", "fms-fsdp"}) {
    SCOPED_TRACE(stack);
    const Estimator estimator(experiment(model, 1, 8, 4096, stack));
    specs::RegularPlacement placement;
    placement.data = 8;
    for (const std::int64_t stage : {2, 3}) {
      placement.zero.stage = stage;
      const auto cost = estimator.estimate(specs::regular_placement(placement, model.layers));
      EXPECT_NEAR(device_bytes(cost, model_states) / 6'738'415'616, 16.0 / 8, 0.001);
      if (stage == 2) {
        EXPECT_NEAR(device_bytes(cost, {MemoryClass::gathered_parameters}) / 6'738'415'616, 2, 0.001);
      }
    }
  }
}

// Under a pipeline bf16 parameters stay gathered and fp32 gradients whole until the last micro-batch; what
// the optimizer works on is sharded.
TEST(Memory, Fsdp2ShardsTheOptimizerStatesOfAPipelineStage) {
  const specs::ModelSpec model = llama(32, 4096, 32, 32, 11008, 32000);
  const Estimator estimator(experiment(model, 2, 64, 4096, "torchtitan"));
  specs::RegularPlacement placement;
  placement.data = 8;
  placement.pipeline = 2;
  placement.accumulation = 8;
  placement.zero.stage = 2;
  const auto cost = estimator.estimate(specs::regular_placement(placement, model.layers));
  const double parameters = 16 * 202'383'360.0 + 32000 * 4096;
  EXPECT_NEAR(device_bytes(cost, model_states) / parameters, 16.0 / 8, 0.001);
  EXPECT_NEAR(device_bytes(cost, {MemoryClass::gathered_parameters}) / parameters, 2, 0.001);
  EXPECT_NEAR(device_bytes(cost, {MemoryClass::communication_buckets}) / parameters, 4, 0.001);
}

// 64 devices hold 47 billion parameters in 16 bytes each, with experts spread over 8 ranks or over none.
TEST(Memory, FullyShardedExpertsOfAllRanksAreTheWholeModel) {
  const specs::ModelSpec model = testing::mixtral_8x7b();
  for (const char* stack : {"torchtitan", "deepspeed"}) {
    SCOPED_TRACE(stack);
    const Estimator estimator(experiment(model, 8, 64, 4096, stack));
    for (const std::int64_t expert : {1, 8}) {
      specs::RegularPlacement placement;
      placement.data = 64;
      placement.expert = expert;
      placement.zero.stage = 3;
      const auto cost = estimator.estimate(specs::regular_placement(placement, model.layers));
      EXPECT_NEAR(64 * device_bytes(cost, model_states) / 46'702'792'704, 16, 0.01) << expert;
    }
  }
}

// Two experts of a token keep twice what one dense FFN of their width does.
TEST(Memory, UnfusedMixturesKeepWhatTheirRoutedTokensPass) {
  specs::ModelSpec mixture = testing::mixtral_8x7b();
  specs::ModelSpec dense = mixture;
  dense.mixture.reset();
  const auto activations = [](const specs::ModelSpec& model, const char* stack) {
    specs::RegularPlacement placement;
    placement.data = 8;
    placement.zero.stage = 3;
    return device_bytes(Estimator(experiment(model, 1, 8, 4096, stack))
                            .estimate(specs::regular_placement(placement, model.layers)),
                        {MemoryClass::activations});
  };
  for (const char* stack : {"torchtitan", "deepspeed"}) {
    const double second_expert = 32.0 * 4096 * (3 * 2 * 14336 + 2 * 2 * 4096);
    EXPECT_NEAR(activations(mixture, stack) - activations(dense, stack), second_expert, 0.02 * second_expert)
        << stack;
  }
}

// ZeRO-3 has 16 bytes a parameter to share out: weights and gradients in 16 bits, master weights, two
// moments.
TEST(Memory, DeepSpeedKeepsItsPartOfTheGradientsUnlessTheOptimizerIsOffloaded) {
  const specs::ModelSpec model = llama(32, 4096, 32, 32, 11008, 32000);
  const Estimator estimator(experiment(model, 1, 8, 4096, "deepspeed"));
  specs::RegularPlacement placement;
  placement.data = 8;
  placement.zero.stage = 3;
  const auto states = [&] {
    return device_bytes(estimator.estimate(specs::regular_placement(placement, model.layers)), model_states) /
           6'738'415'616;
  };
  EXPECT_NEAR(states(), 16.0 / 8, 0.001);
  placement.offload.optimizer = {specs::OffloadDevice::cpu, 4};
  EXPECT_NEAR(states(), (2 + 14.0 / 2) / 8, 0.001);
  placement.offload.optimizer.eighths = 8;
  EXPECT_NEAR(states(), 2.0 / 8, 0.001);
}

// 1F1B: rank i of p has p - i micro-batches in flight, whichever stack runs it; the last alone has logits.
TEST(Memory, APipelineOfDeepSpeedHasAsManyMicroBatchesInFlightAsRanksFollow) {
  const specs::ModelSpec model = llama(32, 4096, 32, 32, 11008, 32000);
  const Estimator estimator(experiment(model, 1, 8, 4096, "deepspeed"));
  specs::RegularPlacement placement;
  placement.pipeline = 4;
  placement.accumulation = 8;
  for (const auto& [recomputation, kept] :
       {std::pair{specs::Recomputation::none, MemoryClass::activations},
        {specs::Recomputation::full, MemoryClass::recomputation_checkpoints}}) {
    placement.recomputation = recomputation;
    const auto cost = estimator.estimate(specs::regular_placement(placement, model.layers));
    const double last = device_bytes(cost, {kept}, 3);
    EXPECT_GT(last, 0);
    for (int rank = 0; rank < 4; ++rank) {
      EXPECT_NEAR(device_bytes(cost, {kept}, rank), (4 - rank) * last, 1e-6 * last);
      EXPECT_EQ(device_bytes(cost, {MemoryClass::logits_and_loss}, rank) > 0, rank == 3);
    }
  }
}

}  // namespace
}  // namespace cost_models
