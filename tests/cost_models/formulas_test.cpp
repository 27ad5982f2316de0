// Worked examples of the single formulas.
#include <cmath>
#include <utility>

#include <gtest/gtest.h>

#include "cost_models/attention_kernel.h"
#include "cost_models/collectives.h"
#include "cost_models/flops.h"
#include "cost_models/gemm.h"
#include "cost_models/goodput.h"
#include "cost_models/offload.h"
#include "cost_models/pipeline.h"
#include "cost_models/stack_profile.h"
#include "cost_models/storage.h"
#include "tests/cost_models/model_fixtures.h"

namespace cost_models {
namespace {

using testing::gpt;
using testing::llama;
using testing::mixtral_8x7b;

GemmRates a100_rates() {
  GemmRates rates;
  rates.flops_per_second = 312e12;
  rates.memory_bytes_per_second = 2e12;
  rates.multiprocessors = 108;
  return rates;
}

TEST(Gemm, OfWholeWavesRunsAtTheRate) {
  // 108 tiles of 256 × 128 are one wave.
  const double seconds = gemm_seconds(256 * 12, 128 * 9, 8192, a100_rates());
  EXPECT_NEAR(seconds, 2.0 * 3072 * 1152 * 8192 / 312e12, 0.05 * seconds);
}

TEST(Gemm, PaysAWholeWaveForOneTileTooMany) {
  const double whole = gemm_seconds(256 * 12, 128 * 9, 8192, a100_rates());
  EXPECT_GT(gemm_seconds(256 * 12 + 1, 128 * 9, 8192, a100_rates()), 1.05 * whole);
}

TEST(Gemm, WithFewRowsIsBoundByMemory) {
  GemmRates rates = a100_rates();
  rates.multiprocessors = 0;
  const double bytes = 2.0 * (1 * 8192 + 8192.0 * 8192 + 8192);
  EXPECT_NEAR(gemm_seconds(1, 8192, 8192, rates), bytes / 2e12, 0.01 * bytes / 2e12);
  EXPECT_GE(gemm_seconds(1, 8192, 8192, a100_rates()), bytes / 2e12);
}

TEST(Gemm, OfAnOddWidthKeepsOnlyAShareOfTheRate) {
  GemmRates rates = a100_rates();
  rates.misaligned_factor = 0.4;
  const PassSeconds even = linear_seconds(8192, 50304, 2048, rates);
  const PassSeconds odd = linear_seconds(8192, 50257, 2048, rates);
  EXPECT_NEAR(odd.forward / even.forward, 2.5, 0.01);
  EXPECT_NEAR(odd.backward / even.backward, 2.5, 0.01);
  EXPECT_EQ(alignment_share(50256, 0.4), 1);
}

TEST(Gemm, AWidthOf13824IsFasterThanOneOf14400AcrossEightRanks) {
  // The FFN of one rank of eight: 7,200 columns are 57 tiles of 128 and leave an eighth of one empty, 6,912
  // are 54 whole ones.
  const auto rate = [](double hidden) {
    const double tokens = 2048, width = 4 * hidden / 8;
    return 2 * tokens * width * hidden / gemm_seconds(tokens, width, hidden, a100_rates());
  };
  EXPECT_GT(rate(13824), 1.02 * rate(14400));
}

TEST(Loss, MovesTheBytesOfItsKernels) {
  specs::TrainingSpec training;
  training.stack = "megatron-2021";
  EXPECT_EQ(loss_bytes_per_logit(stack_profile(training)), 6 + 4 + 8 + 8 + 4 + 8 + 8 + 6);
  training.stack = "composer-fsdp";
  EXPECT_EQ(loss_bytes_per_logit(stack_profile(training)), 8);
  training.stack = "torchtitan";
  EXPECT_EQ(loss_bytes_per_logit(stack_profile(training)), 28);
  training.stack_features = {"compiled_loss"};
  EXPECT_EQ(loss_bytes_per_logit(stack_profile(training)), 12);
}

TEST(Stack, AnUnknownOneIsPricedWithTheNearestByName) {
  specs::TrainingSpec training;
  for (const auto& [stack, nearest] : {std::pair{"Megatron-Bridge", "nemo"},
                                       {"my-fsdp2", "fsdp2"},
                                       {"deepspeed-0.19", "deepspeed"},
                                       {"whatever", "megatron-core"}}) {
    training.stack = stack;
    const StackProfile profile = stack_profile(training);
    EXPECT_FALSE(profile.exact);
    EXPECT_EQ(profile.name, stack);
    EXPECT_EQ(profile.stand_in, nearest);
  }
}

TEST(Gemm, OnACpuFollowsTheMeasuredRates) {
  GemmRates rates;
  rates.memory_bytes_per_second = 1e12;
  rates.measured = {{specs::Precision::fp32, 256, 50e9}, {specs::Precision::fp32, 1024, 100e9}};
  EXPECT_NEAR(gemm_seconds(1024, 1024, 1024, rates), 2 * 1024.0 * 1024 * 1024 / 100e9, 1e-4);
  EXPECT_NEAR(gemm_seconds(640, 640, 640, rates), 2 * 640.0 * 640 * 640 / 75e9, 1e-4);
}

TEST(Collectives, TensorParallelAcrossNodesIsAsSlowAsTheNetwork) {
  // Llama 2 70B at 4,096 tokens: messages of 67,108,864 bytes, 16 ranks on two nodes behind 25 GB/s each.
  LinkRates rates;
  rates.link_bytes_per_second = 300e9;
  rates.network_bytes_per_second = 25e9 / 8;
  const double bytes = 67'108'864;
  const RankGroup across = rank_group(16, 1, 8);
  EXPECT_NEAR(collective_seconds(Collective::all_reduce, bytes, across, rates, CollectiveAlgorithm::flat_ring)
                  .total(),
              5.03e-3, 0.01e-3);
  const RankGroup inside = rank_group(8, 1, 8);
  EXPECT_NEAR(collective_seconds(Collective::all_reduce, bytes, inside, rates).total(), 0.391e-3, 0.002e-3);
  // Four all-reduces in each of 80 layers: 1.611 s a micro-batch against 0.125 s, 12.9 times.
  const double slow =
      320 * collective_seconds(Collective::all_reduce, bytes, across, rates, CollectiveAlgorithm::flat_ring)
                .total();
  const double fast = 320 * collective_seconds(Collective::all_reduce, bytes, inside, rates).total();
  EXPECT_NEAR(slow, 1.611, 0.001);
  EXPECT_NEAR(fast, 0.125, 0.001);
  EXPECT_NEAR(slow / fast, 12.9, 0.1);
}

// defilantech/LLMKube issue 1423: two nodes of one GPU behind 109 Gbit/s, 96 layers with two all-reduces of
// 2,048 tokens · 12,288 in 16 bits: 9.66 GB take 709 ms.
TEST(Collectives, OneGpuNodesExchangeEveryLayerOverTheNetwork) {
  LinkRates rates;
  rates.link_bytes_per_second = 300e9;
  rates.network_bytes_per_second = 109e9 / 8;
  const double bytes = 2048.0 * 12288 * 2;
  EXPECT_EQ(192 * bytes, 9'663'676'416);
  EXPECT_NEAR(192 * collective_seconds(Collective::all_reduce, bytes, rank_group(2, 1, 1), rates).total(),
              0.7093, 1e-4);
}

TEST(Collectives, SlowEthernetTakesThreeToSevenTimesAsLongAsFastRdma) {
  LinkRates rdma, ethernet;
  rdma.link_bytes_per_second = ethernet.link_bytes_per_second = 300e9;
  rdma.network_bytes_per_second = 100e9 / 8 * 0.92;
  ethernet.network_bytes_per_second = 25e9 / 8 * 0.75;
  rdma.network_step_seconds = 5e-6;
  ethernet.network_step_seconds = 30e-6;
  for (const double bytes : {64e6, 1e9, 10e9}) {
    const RankGroup group = rank_group(16, 1, 1);
    const double ratio = collective_seconds(Collective::all_reduce, bytes, group, ethernet).total() /
                         collective_seconds(Collective::all_reduce, bytes, group, rdma).total();
    EXPECT_GT(ratio, 3);
    EXPECT_LT(ratio, 7);
  }
}

TEST(Collectives, GroupsKnowHowManyOfTheirRanksShareADomain) {
  EXPECT_EQ(rank_group(16, 8, 8).ranks_per_domain, 1);  // data-parallel ranks of tensor-parallel nodes
  EXPECT_EQ(rank_group(16, 2, 8).ranks_per_domain, 4);
  EXPECT_EQ(rank_group(4, 1, 8).domains(), 1);
}

TEST(Collectives, PreferMeasuredRatesInsideTheNode) {
  LinkRates rates;
  rates.link_bytes_per_second = 1e12;
  rates.measured = {{specs::MeasuredCollective::all_reduce, 2, 220e-6, 1.48e9}};
  EXPECT_NEAR(collective_seconds(Collective::all_reduce, 1e6, rank_group(2, 1, 8), rates).total(),
              220e-6 + 1e6 / 1.48e9, 1e-9);
}

TEST(Attention, CausalShareOfAWindow) {
  EXPECT_EQ(causal_share(4096, 0), 0.5);
  EXPECT_EQ(causal_share(128, 4096), 0.5);
  EXPECT_NEAR(causal_share(4096, 128), 0.03125 - 0.03125 * 0.03125 / 2, 1e-12);
}

TEST(Attention, UnfusedKernelsMoveFifteenBytesAScore) {
  AttentionWork work{.sequences = 1,
                     .query_tokens = 2048,
                     .key_tokens = 2048,
                     .heads = 12,
                     .query_key_dim = 128,
                     .value_dim = 128};
  AttentionRates rates;
  rates.unfused_flops_per_second = 1e30;
  rates.memory_bytes_per_second = 1e12;
  rates.unfused_traffic = 1;
  EXPECT_NEAR(unfused_attention_seconds(work, rates).forward, 15 * 12.0 * 2048 * 2048 / 1e12, 1e-9);
}

TEST(Pipeline, BubbleOfOneForwardOneBackward) {
  for (const auto& [micro_batches, share] :
       {std::pair{1.0, 0.875}, {2.0, 0.778}, {8.0, 0.467}, {64.0, 0.0986}}) {
    const std::vector<StageSeconds> stages(8, {1.0 / 3, 2.0 / 3, 1.0 / 3});
    const std::vector<double> transfers(7);
    const std::vector<double> after(8);
    const double seconds =
        pipeline_seconds({8, 1, micro_batches, 0, specs::ScheduleKind::one_forward_one_backward},
                         {stages, transfers, after}, ScheduleOrders());
    EXPECT_NEAR(1 - micro_batches / seconds, share, 5e-4);
  }
}

TEST(Pipeline, RanksHoldFewerMicroBatchesTowardsTheEnd) {
  PipelineShape shape{4, 1, 8, 0, specs::ScheduleKind::one_forward_one_backward};
  for (int rank = 0; rank < 4; ++rank) EXPECT_EQ(micro_batches_in_flight(shape, rank), 4 - rank);
  shape.micro_batches = 2;
  for (const auto& [rank, held] : {std::pair{0, 2}, {1, 2}, {2, 2}, {3, 1}})
    EXPECT_EQ(micro_batches_in_flight(shape, rank), held);
}

// deepspeedai/DeepSpeed issue 4571: 5 buffers of 10⁹ 16-bit parameters and 4 of fp32 state pin 26 GB of a
// host that has 31.2 GB; with the default of 10⁸ the first pool is 1 GB.
TEST(Offload, SwapBuffersPinHostMemory) {
  EXPECT_EQ(swap_buffer_bytes(5, 1e9, 2) + swap_buffer_bytes(4, 1e9, 4), 26e9);
  EXPECT_EQ(swap_buffer_bytes(5, 1e8, 2), 1e9);
}

TEST(Offload, TakesTheHostsTimeTheLinksAndTheDrives) {
  EXPECT_EQ(host_update_seconds(8e9, 4e9), 2);
  EXPECT_EQ(host_link_seconds(1e9, 4, 25e9), 0.32);
  // 12 bytes of 10⁹ parameters, read at 25 GB/s and written at 12 GB/s.
  EXPECT_NEAR(nvme_swap_seconds(12e9, 25e9, 12e9), 0.48 + 1, 1e-12);
  EXPECT_EQ(nvme_swap_seconds(12e9, 0, 12e9), 0);
}

TEST(Storage, WritesAtTheNodesRateUntilTheSystemsIsReached) {
  specs::StorageSpec nvme, nfs, lustre;
  nvme.node_write_bytes_per_second = 12e9;
  nfs.write_bytes_per_second = 1e9;
  lustre.node_write_bytes_per_second = 10e9;
  lustre.write_bytes_per_second = 200e9;
  const double bytes = 175e9 * 12;  // GPT-3's weights and moments in fp32
  EXPECT_NEAR(checkpoint_write_seconds(bytes, nvme, 128), 1.37, 0.01);
  EXPECT_NEAR(checkpoint_write_seconds(bytes, nfs, 128), 2100, 1);
  EXPECT_NEAR(checkpoint_write_seconds(bytes, lustre, 128), 10.5, 0.01);
  EXPECT_NEAR(checkpoint_write_seconds(bytes, lustre, 4), 52.5, 0.01);
  EXPECT_EQ(checkpoint_write_seconds(bytes, {}, 4), 0);
}

TEST(Goodput, YoungsIntervalIsTheBest) {
  // 128 nodes that fail once in 10,000 hours each: 78 hours between failures; a stall of 30 s.
  const double between = mean_seconds_between_failures(1e-4, 128);
  EXPECT_NEAR(between, 281250, 1);
  const double best = best_checkpoint_interval_seconds(30, between);
  EXPECT_NEAR(best, std::sqrt(2 * 30 * 281250.0), 1e-6);
  const double at_best = goodput_fraction(best, 30, between, 600);
  EXPECT_NEAR(at_best, 0.9833, 0.0005);
  EXPECT_GT(at_best, goodput_fraction(best / 2, 30, between, 600));
  EXPECT_GT(at_best, goodput_fraction(best * 2, 30, between, 600));
  EXPECT_EQ(goodput_fraction(0, 0, 0, 600), 1);
}

TEST(Flops, FollowTheFormulaOfNarayananEtAl) {
  // 96 B s l h² (1 + s/6h + V/16lh): full recomputation, the whole attention square.
  const specs::ModelSpec model = gpt(96, 12288, 96, 51200, 2048);
  const double h = 12288, l = 96, s = 2048, v = 51200;
  const double expected = 96 * l * h * h * (1 + s / (6 * h) + v / (16 * l * h));
  EXPECT_NEAR(hardware_flops_per_token(model, s, specs::Recomputation::full, {.causal = false}), expected,
              1e-9 * expected);
}

TEST(Flops, CountActiveExpertsOnly) {
  const double active =
      32 * (4096.0 * 128 * (2 * 32 + 2 * 8) + 8 * 4096 + 2 * 3 * 4096.0 * 14336) + 4096.0 * 32000;
  EXPECT_NEAR(product_parameters(mixtral_8x7b()), active, 1);
}

TEST(Flops, CausalAttentionIsHalf) {
  const specs::ModelSpec model = llama(32, 4096, 32, 8, 14336, 128256);
  EXPECT_NEAR(attention_forward_flops(model, 8192, true), attention_forward_flops(model, 8192, false) / 2, 1);
  EXPECT_NEAR(attention_forward_flops(model, 8192, false), 4.0 * 8192 * 4096 * 32, 1);
}

}  // namespace
}  // namespace cost_models
