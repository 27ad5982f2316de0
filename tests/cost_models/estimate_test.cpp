#include "cost_models/estimate.h"

#include <map>
#include <random>

#include <gtest/gtest.h>

#include "cost_models/parameters.h"
#include "cost_models/rank_price.h"
#include "specs/language/catalog.h"
#include "tests/cost_models/model_fixtures.h"

namespace cost_models {
namespace {

using testing::deepseek_v3;
using testing::experiment;
using testing::gpt;
using testing::llama;
using testing::mixtral_8x7b;

template <class Value>
Value pick(std::mt19937& random, std::initializer_list<Value> values) {
  return *(values.begin() + std::uniform_int_distribution<std::size_t>(0, values.size() - 1)(random));
}

specs::RegularPlacement random_placement(std::mt19937& random, bool mixture) {
  specs::RegularPlacement placement;
  placement.tensor = pick<std::int64_t>(random, {1, 2, 4, 8});
  placement.context = pick<std::int64_t>(random, {1, 1, 2});
  placement.pipeline = pick<std::int64_t>(random, {1, 2, 4, 8, 12});
  placement.data = pick<std::int64_t>(random, {1, 2, 8, 64});
  if (mixture) placement.expert = pick<std::int64_t>(random, {1, 2});
  placement.micro_batch = pick<std::int64_t>(random, {1, 2, 4});
  placement.accumulation = pick<std::int64_t>(random, {1, 8, 96});
  placement.schedule =
      placement.pipeline == 1
          ? specs::ScheduleKind::one_forward_one_backward
          : pick(random, {specs::ScheduleKind::gpipe, specs::ScheduleKind::one_forward_one_backward,
                          specs::ScheduleKind::interleaved, specs::ScheduleKind::zero_bubble_h1});
  if (placement.schedule == specs::ScheduleKind::interleaved) placement.virtual_stages = 3;
  placement.sequence_parallel = placement.tensor > 1 && pick(random, {false, true});
  placement.recomputation =
      pick(random, {specs::Recomputation::none, specs::Recomputation::selective, specs::Recomputation::full});
  placement.zero.stage = pick<std::int64_t>(random, {0, 1, 2, 3});
  if (placement.zero.stage > 0 && pick(random, {false, false, true}))
    placement.offload.optimizer = {specs::OffloadDevice::cpu, 8};
  return placement;
}

class QuickEqualsEstimate : public ::testing::TestWithParam<const char*> {};

TEST_P(QuickEqualsEstimate, OnRandomRegularPlacements) {
  std::mt19937 random(7);
  for (const auto& model :
       {gpt(96, 12288, 96, 51200, 2048), deepseek_v3(), llama(32, 4096, 32, 8, 14336, 128256)}) {
    const Estimator estimator(experiment(model, 128, 1536, 2048, GetParam()));
    for (int i = 0; i < 300; ++i) {
      const specs::RegularPlacement regular = random_placement(random, model.mixture.has_value());
      const QuickCost quick = estimator.quick(regular);
      const specs::CostBreakdown full =
          estimator.estimate(specs::regular_placement(regular, specs::block_count(model)));
      EXPECT_NEAR(quick.step_seconds, full.step_seconds, 1e-9 * full.step_seconds);
      EXPECT_NEAR(static_cast<double>(quick.peak_device_bytes), static_cast<double>(full.peak_device_bytes),
                  16);
      EXPECT_NEAR(static_cast<double>(quick.peak_host_bytes_per_node),
                  static_cast<double>(full.peak_host_bytes_per_node), 16);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Stacks, QuickEqualsEstimate,
                         ::testing::Values("megatron-core", "nemo", "fsdp2", "deepspeed",
                                           "megatron-deepspeed", "dsrun"));

/// Stage by stage, rank by rank.
double bound_of_each(const Estimator& estimator, const specs::RegularPlacement& regular,
                     const specs::ModelSpec& model) {
  const StagePricer pricer = estimator.stage_pricer(regular);
  std::vector<StageSeconds> stages;
  std::vector<UnitCounts> held(static_cast<std::size_t>(regular.pipeline));
  for (const specs::PipelineStage& stage :
       specs::regular_placement(regular, specs::block_count(model)).stages) {
    const UnitCounts counts = unit_counts(model, stage);
    stages.push_back(pricer.stage(counts));
    held[static_cast<std::size_t>(stage.pipeline_rank)] += counts;
  }
  std::vector<StepEndSeconds> ends;
  for (const UnitCounts& counts : held) ends.push_back(pricer.end(counts));
  return pricer.step_bound(stages, ends);
}

TEST(QuickBound, OfRunsOfAlikeRanksIsThatOfEachRankAndNeverAboveTheStep) {
  std::mt19937 random(8);
  for (const char* network : {"ib-hdr-8x200", "ethernet-25g"})
    for (const auto& model : {gpt(96, 12288, 96, 51200, 2048), deepseek_v3()}) {
      specs::Experiment inputs = experiment(model, 128, 1536, 2048, "dsrun");
      inputs.cluster.network = *specs::catalog_network(network);
      const Estimator estimator(inputs);
      for (int i = 0; i < 500; ++i) {
        specs::RegularPlacement regular = random_placement(random, model.mixture.has_value());
        if (regular.pipeline > 1 && pick(random, {false, false, true})) {
          regular.schedule = specs::ScheduleKind::zero_bubble_v;
          regular.virtual_stages = 2;
        }
        const double bound = estimator.quick_bound(regular);
        EXPECT_NEAR(bound, bound_of_each(estimator, regular, model), 1e-12 * bound);
        EXPECT_LE(bound, estimator.quick(regular).step_seconds * (1 + 1e-12));
      }
    }
}

TEST(Estimate, ExposedSecondsOfTheJobAndOfEachRankAddUpToTheStep) {
  const specs::ModelSpec model = gpt(96, 12288, 96, 51200, 2048);
  const Estimator estimator(experiment(model, 128, 1536, 2048));
  std::mt19937 random(11);
  for (int i = 0; i < 100; ++i) {
    const specs::CostBreakdown cost =
        estimator.estimate(specs::regular_placement(random_placement(random, false), model.layers));
    std::map<std::int64_t, double> sums;
    for (const specs::TimeEntry& entry : cost.time) sums[entry.pipeline_rank] += entry.exposed_seconds;
    for (const auto& [rank, sum] : sums)
      EXPECT_NEAR(sum, cost.step_seconds, 1e-9 * cost.step_seconds) << rank;
    std::map<std::int64_t, std::int64_t> bytes;
    for (const specs::MemoryEntry& entry : cost.memory)
      if (entry.location == specs::MemoryLocation::device) bytes[entry.pipeline_rank] += entry.bytes;
    std::int64_t peak = 0;
    for (const auto& [rank, sum] : bytes) peak = std::max(peak, sum);
    EXPECT_NEAR(static_cast<double>(peak), static_cast<double>(cost.peak_device_bytes), 16);
  }
}

TEST(Estimate, ReproducesTheLayoutOfGpt3OnAThousandDevices) {
  // Narayanan et al. 2021, table 1: 175B on 1,024 A100 at 1,536 sequences, 140 TFLOP/s a device, about 23 s a
  // step.
  specs::Experiment run = experiment(gpt(96, 12288, 96, 51200, 2048), 128, 1536, 2048, "megatron-2021");
  run.training.attention = specs::AttentionImplementation::unfused;
  run.training.precision = specs::Precision::fp16;
  run.training.gradient_precision = run.training.reduction_precision = specs::Precision::fp16;
  specs::RegularPlacement placement;
  placement.tensor = 8;
  placement.pipeline = 16;
  placement.data = 8;
  placement.accumulation = 192;
  placement.recomputation = specs::Recomputation::full;
  const QuickCost cost = Estimator(run).quick(placement);
  EXPECT_NEAR(cost.step_seconds, 31.5, 2);
  EXPECT_TRUE(Estimator(run).fits(cost));
  placement.pipeline = 1;
  placement.data = 128;
  placement.accumulation = 12;
  EXPECT_FALSE(Estimator(run).fits(Estimator(run).quick(placement)));  // 44 GB of weights alone
}

TEST(Estimate, ChargesZeroTwoItsReductionInEachMicroBatch) {
  const specs::ModelSpec model = llama(32, 4096, 32, 32, 11008, 32000);
  const Estimator estimator(experiment(model, 16, 1024, 2048));
  specs::RegularPlacement placement;
  placement.data = 128;
  placement.accumulation = 8;
  placement.zero.stage = 1;
  const double one = estimator.quick(placement).step_seconds;
  placement.zero.stage = 2;
  EXPECT_GT(estimator.quick(placement).step_seconds, one);
}

TEST(Estimate, AnOptimizerOnDrivesTakesTheirTimeBesideTheHosts) {
  specs::Experiment run = experiment(llama(32, 4096, 32, 32, 11008, 32000), 1, 64, 2048);
  specs::NodeSpec& node = run.cluster.groups.front().node;
  node.nvme_read_bytes_per_second = 25e9;
  node.nvme_write_bytes_per_second = 12e9;
  specs::RegularPlacement placement;
  placement.data = 8;
  placement.accumulation = 8;
  placement.zero.stage = 1;
  placement.offload.optimizer = {specs::OffloadDevice::cpu, 8};
  const double on_host = Estimator(run).quick(placement).step_seconds;
  placement.offload.optimizer.device = specs::OffloadDevice::nvme;
  const double on_drives = Estimator(run).quick(placement).step_seconds;
  const double bytes = 12 * static_cast<double>(total_parameters(run.model));
  EXPECT_NEAR(on_drives - on_host, bytes / 25e9 + bytes / 12e9, 0.02 * bytes / 12e9);
}

TEST(Estimate, LocalStepsShareOneExchangeOfTheReplicas) {
  const specs::Experiment run = experiment(llama(32, 4096, 32, 32, 11008, 32000), 16, 1024, 2048);
  const Estimator estimator(run);
  specs::RegularPlacement regular;
  regular.data = 128;
  regular.accumulation = 8;
  specs::Placement placement = specs::regular_placement(regular, specs::block_count(run.model));
  const double each_step = estimator.estimate(placement).step_seconds;
  placement.local_steps = 100;
  const double local = estimator.estimate(placement).step_seconds;
  placement.local_steps = 500;
  EXPECT_LT(local, each_step);
  EXPECT_LT(estimator.estimate(placement).step_seconds, local);
}

specs::Experiment on_cpu_cores(specs::ModelSpec model, std::int64_t cores, std::int64_t global_batch,
                               std::int64_t sequence_length) {
  specs::Experiment run = experiment(std::move(model), 1, global_batch, sequence_length, "dsrun");
  specs::NodeSpec& node = run.cluster.groups.front().node;
  run.training.precision = specs::Precision::fp32;
  node.devices = cores;
  node.link_bytes_per_second = 1.5e9;
  node.device.generation = "cpu";
  node.device.multiprocessors = 0;
  node.device.peak_flops = {{specs::Precision::fp32, 105e9}};
  node.device.gemm_rates = {{specs::Precision::fp32, 256, 104e9},
                            {specs::Precision::fp32, 512, 105e9},
                            {specs::Precision::fp32, 1024, 99e9}};
  node.device.memory_bytes_per_second = 15e9;
  node.device.operator_seconds = 2e-6;
  run.cluster.network.kind = specs::NetworkKind::loopback;
  return run;
}

TEST(Estimate, CoresUpdateNoQuickerForTheHostThanForThemselves) {
  specs::Experiment run = on_cpu_cores(llama(4, 1024, 8, 8, 4096, 32000), 8, 8, 512);
  run.cluster.groups.front().node.device.host_link_bytes_per_second = 8e9;
  specs::RegularPlacement placement;
  placement.data = 8;
  const double on_device = Estimator(run).quick(placement).step_seconds;
  placement.offload.optimizer = {specs::OffloadDevice::cpu, 8};
  const double copies = 2 * 4 * static_cast<double>(total_parameters(run.model)) / 8e9;
  EXPECT_NEAR(Estimator(run).quick(placement).step_seconds - on_device, copies, 0.02 * copies);
}

TEST(Estimate, PredictsTheStepOfATinyGptOnOneCore) {
  // 4 layers, hidden 256, 4 sequences of 256 tokens, 4,096 symbols: 413 ms were measured on a core with these
  // rates.
  specs::ModelSpec model = gpt(4, 256, 8, 4096, 256);
  model.tied_embeddings = false;
  specs::RegularPlacement placement;
  placement.micro_batch = 4;
  EXPECT_NEAR(Estimator(on_cpu_cores(model, 1, 4, 256)).quick(placement).step_seconds, 0.413, 0.3 * 0.413);
}

TEST(Estimate, PredictsTheBytesThatTheRuntimeCounted) {
  // The quickstart as first written: 2 data-parallel ranks, 4 micro-batches of 2 sequences of 128 tokens
  // each.
  const specs::ModelSpec model = gpt(4, 256, 8, 256, 128);
  specs::RegularPlacement placement;
  placement.data = 2;
  placement.micro_batch = 2;
  placement.accumulation = 4;
  placement.zero.stage = 1;
  const QuickCost cost = Estimator(on_cpu_cores(model, 2, 16, 128)).quick(placement);
  EXPECT_NEAR(static_cast<double>(cost.peak_device_bytes), 57'248'784, 0.005 * 57'248'784);
}

TEST(Estimate, TellsThatAStackWithoutConstantsIsPricedWithTheNearest) {
  const specs::ModelSpec model = llama(32, 4096, 32, 32, 11008, 32000);
  EXPECT_TRUE(Estimator(experiment(model, 1, 8, 2048, "nemo")).profile().exact);
  EXPECT_FALSE(Estimator(experiment(model, 1, 8, 2048, "colossal-ai")).profile().exact);
}

specs::RegularPlacement of_tensor_8() {
  specs::RegularPlacement placement;
  placement.tensor = 8;
  placement.pipeline = 8;
  placement.data = 2;
  placement.accumulation = 64;
  placement.sequence_parallel = true;
  return placement;
}

TEST(ModuleTreatments, CopiesThatShareTheTokensWorkAsFastAsTheAxisAndKeepEightTimesTheWeights) {
  const Estimator estimator(experiment(gpt(96, 12288, 96, 51200, 2048), 128, 128, 2048, "megatron-core"));
  specs::RegularPlacement placement = of_tensor_8();
  const LayerCosts whole = estimator.layer(layer_key(placement));
  placement.modules.feed_forward_tensor = 1;
  const LayerCosts redundant = estimator.layer(layer_key(placement));
  placement.modules.feed_forward_work = specs::ReplicaWork::token_share;
  const LayerCosts shared = estimator.layer(layer_key(placement));
  EXPECT_NEAR(redundant.feed_forward.flops, 8 * whole.feed_forward.flops,
              0.01 * redundant.feed_forward.flops);
  EXPECT_NEAR(shared.feed_forward.flops, whole.feed_forward.flops, 0.01 * whole.feed_forward.flops);
  EXPECT_GT(redundant.feed_forward.forward, 5 * shared.feed_forward.forward);
  // Each copy works on the tokens that it has: nothing travels, but the gradients do at the end.
  EXPECT_EQ(at(shared.feed_forward.terms, specs::TimeTerm::tensor_communication), 0);
  EXPECT_EQ(shared.feed_forward.parameters.dense, redundant.feed_forward.parameters.dense);
  EXPECT_EQ(redundant.feed_forward.parameters.partial, 0);
  EXPECT_EQ(shared.feed_forward.parameters.partial, shared.feed_forward.parameters.dense * 7 / 8);
  EXPECT_EQ(shared.attention.forward, whole.attention.forward);
}

TEST(ModuleTreatments, ATokenParallelOutputLayerKeepsTheWholeTableAndItsShareOfTheLogits) {
  const Estimator estimator(experiment(llama(32, 4096, 32, 8, 14336, 128256), 16, 128, 2048, "dsrun"));
  specs::RegularPlacement placement = of_tensor_8();
  const auto last_rank = [&](specs::MemoryClass memory_class) {
    std::int64_t bytes = 0;
    for (const auto& entry : estimator.estimate(specs::regular_placement(placement, 32)).memory)
      if (entry.pipeline_rank == 7 && entry.memory_class == memory_class) bytes += entry.bytes;
    return bytes;
  };
  const std::int64_t logits = last_rank(specs::MemoryClass::logits_and_loss);
  const std::int64_t parameters = last_rank(specs::MemoryClass::parameters);
  placement.modules.output_tensor = 1;
  placement.modules.output_mode = specs::OutputLayerMode::token_parallel;
  EXPECT_NEAR(static_cast<double>(last_rank(specs::MemoryClass::logits_and_loss)),
              static_cast<double>(logits), 0.01 * static_cast<double>(logits));
  EXPECT_GT(last_rank(specs::MemoryClass::parameters), parameters + 128256LL * 4096 * 2 * 6 / 8);
}

TEST(DelayedUpdate, HidesTheHostsUpdateBehindTheNextStep) {
  const Estimator estimator(experiment(llama(32, 4096, 32, 8, 14336, 128256), 16, 128, 2048, "dsrun"));
  specs::RegularPlacement placement = of_tensor_8();
  placement.zero.stage = 1;
  placement.offload.optimizer = {specs::OffloadDevice::cpu, 8};
  const double waited_for = estimator.quick(placement).step_seconds;
  placement.offload.delayed_update = true;
  const double delayed = estimator.quick(placement).step_seconds;
  EXPECT_LT(delayed, waited_for);
  EXPECT_NEAR(estimator.estimate(specs::regular_placement(placement, 32)).step_seconds, delayed,
              1e-9 * delayed);
}

TEST(Boundaries, ThoseBetweenNodesTakeLongerThanThoseInsideOne) {
  const specs::Experiment job = experiment(gpt(96, 12288, 96, 51200, 2048), 128, 128, 2048, "megatron-core");
  const Estimator estimator(job);
  specs::RegularPlacement placement = of_tensor_8();
  placement.tensor = 4;
  placement.data = 1;
  const Transfers transfers = job_shape(estimator.inputs(), placement).transfers;  // two ranks a node
  for (std::int64_t rank = 0; rank + 1 < placement.pipeline; rank += 2) {
    EXPECT_EQ(transfers.after(rank), transfers.least());
    if (rank + 2 < placement.pipeline) {
      EXPECT_GT(transfers.after(rank + 1), 2 * transfers.least());
    }
  }
}

TEST(NetworkLevels, AnOversubscribedLevelSlowsWhatCrossesItAlone) {
  specs::Experiment job = experiment(gpt(96, 12288, 96, 51200, 2048), 128, 128, 2048, "megatron-core");
  const Estimator flat(job);
  job.cluster.network.levels = {{.nodes = 4}, {.nodes = 0, .oversubscription = 8}};
  const Estimator tapered(job);
  specs::RegularPlacement placement = of_tensor_8();
  placement.zero.stage = 1;
  placement.pipeline = 1;
  placement.data = 4;
  EXPECT_EQ(tapered.quick(placement).step_seconds, flat.quick(placement).step_seconds);
  placement.data = 16;
  EXPECT_GT(tapered.quick(placement).step_seconds, 1.02 * flat.quick(placement).step_seconds);
}

// A node of 8 receives 7/8 of 47 billion parameters in 16 bits for each pass over 25 Gbit/s, the routed
// experts among them: 26 s, twice.
TEST(Estimate, FullShardingGathersTheRoutedExpertsToo) {
  specs::Experiment run = experiment(mixtral_8x7b(), 8, 64, 1024, "deepspeed");
  run.cluster.network.node_bytes_per_second = 3.125e9;
  specs::RegularPlacement placement;
  placement.data = 64;
  placement.zero.stage = 3;
  const double node_seconds = 2 * 46'702'792'704.0 * 7 / 8 / 3.125e9;
  EXPECT_GT(Estimator(run).quick(placement).step_seconds, 2 * node_seconds);
}

// Beside a pipeline FSDP2 keeps gradients whole until the last micro-batch: more micro-batches reduce no
// more.
TEST(Estimate, GradientsOfZeroTwoBesideAPipelineTravelOnceAStep) {
  specs::Experiment run = experiment(llama(32, 4096, 32, 32, 11008, 32000), 2, 256, 1024, "torchtitan");
  specs::RegularPlacement placement;
  placement.pipeline = 2;
  placement.data = 8;
  placement.zero.stage = 2;
  const auto reduction = [&](std::int64_t accumulation) {
    placement.accumulation = accumulation;
    for (const specs::TimeEntry& entry :
         Estimator(run).estimate(specs::regular_placement(placement, 32)).time)
      if (entry.term == specs::TimeTerm::gradient_reduction) return entry.busy_seconds;
    return 0.0;
  };
  EXPECT_GT(reduction(8), 0);
  EXPECT_NEAR(reduction(32), reduction(8), 1e-9);
}

// 32 priced and 32 unpriced devices cost no one knows how much, and surely not what the first half does.
TEST(JobFigures, OfNodesOfWhichOnlySomeHaveAPriceHaveNoCost) {
  specs::Experiment run = experiment(llama(32, 4096, 32, 32, 11008, 32000), 2, 64, 4096);
  run.cluster.groups.push_back(run.cluster.groups.front());
  run.cluster.groups.front().node.price_per_hour_dollars = 10;
  EXPECT_EQ(Estimator(run).job_figures(1, 32).cost_per_step_dollars, 0);
  run.cluster.groups.back().node.price_per_hour_dollars = 20;
  EXPECT_NEAR(Estimator(run).job_figures(3600, 32).cost_per_step_dollars, 2 * 10 + 2 * 20, 1e-9);
}

TEST(JobFigures, TheWholeRunIsWallTimeWithFailuresAndCheckpointsPaidFor) {
  specs::Experiment run = experiment(llama(32, 4096, 32, 32, 11008, 32000), 1, 64, 4096);
  run.training.tokens = 64.0 * 4096 * 1000;
  run.cluster.groups.front().node.price_per_hour_dollars = 10;
  run.cluster.failures_per_node_hour = 0.1;
  run.cluster.restart_seconds = 3600;
  run.cluster.storage.write_bytes_per_second = 1e9;
  specs::RegularPlacement placement;
  placement.tensor = 8;
  const auto cost = Estimator(run).estimate(specs::regular_placement(placement, 32));
  ASSERT_LT(cost.goodput_fraction, 0.91);
  EXPECT_NEAR(cost.run_seconds, 1000 * cost.step_seconds / cost.goodput_fraction, 1e-6 * cost.run_seconds);
  EXPECT_NEAR(cost.run_device_hours, 8 * cost.run_seconds / 3600, 1e-6 * cost.run_device_hours);
  EXPECT_NEAR(cost.run_cost_dollars, 10 * cost.run_seconds / 3600, 1e-6 * cost.run_cost_dollars);
}

}  // namespace
}  // namespace cost_models
