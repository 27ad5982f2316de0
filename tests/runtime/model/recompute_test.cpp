// What the plan says of recomputation is what happens: how often each unit runs, and what is kept.
#include <map>

#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "runtime/mesh/mesh.h"
#include "runtime/monitor/tensor_memory.h"
#include "tests/runtime/model/tiny_models.h"

namespace runtime {
namespace {

using specs::AttentionImplementation;
using specs::Recomputation;

TrainerSpec four_layers(AttentionImplementation attention, std::vector<specs::RecomputationRun> runs) {
  specs::ModelSpec model = gpt();
  model.layers = 4;
  TrainerSpec spec = single_process(model);
  spec.training.attention = attention;
  spec.placement.stages.front().recomputation = std::move(runs);
  return spec;
}

struct Counts {
  std::int64_t feed_forward = 0;
  std::int64_t attention = 0;
  std::int64_t core = 0;
  bool operator==(const Counts&) const = default;
};

/// By layer, of one step of one micro-batch.
std::vector<Counts> counts_of(const TrainerSpec& spec) {
  const Mesh mesh = Mesh::single();
  Trainer trainer(spec, mesh);
  trainer.evaluate(batch(29));  // not counted
  trainer.step(batch(29));
  std::vector<Counts> counts(static_cast<std::size_t>(spec.model.layers));
  for (const UnitPasses& unit : trainer.stages().front()->passes()) {
    Counts& layer = counts.at(static_cast<std::size_t>((unit.unit - 1) / 2));
    if (unit.unit % 2 == 1)
      layer.attention = unit.whole, layer.core = unit.attention_core;
    else
      layer.feed_forward = unit.whole;
  }
  return counts;
}

TEST(Recompute, EachLayerRunsAsOftenAsThePlanSays) {
  const std::vector<specs::RecomputationRun> runs{{.layers = 1, .mode = Recomputation::full},
                                                  {.layers = 2, .mode = Recomputation::selective},
                                                  {.layers = 1, .mode = Recomputation::none}};
  const Counts once{1, 1, 1}, core_twice{1, 1, 2}, twice{2, 2, 2};
  EXPECT_EQ(counts_of(four_layers(AttentionImplementation::unfused, {})),
            (std::vector<Counts>{once, once, once, once}));
  EXPECT_EQ(counts_of(four_layers(AttentionImplementation::unfused, runs)),
            (std::vector<Counts>{twice, core_twice, core_twice, once}));
  // The flash kernel computes its weights again by itself.
  EXPECT_EQ(counts_of(four_layers(AttentionImplementation::flash, runs)),
            (std::vector<Counts>{twice, once, once, once}));
  const std::vector<specs::RecomputationRun> blocks{
      {.layers = 3, .mode = Recomputation::full, .block_layers = 2}, {.layers = 1}};
  EXPECT_EQ(counts_of(four_layers(AttentionImplementation::flash, blocks)),
            (std::vector<Counts>{twice, twice, twice, once}));
}

/// Bytes that the layers keep for backward.
std::int64_t kept(const TrainerSpec& spec) {
  const Mesh mesh = Mesh::single();
  Trainer trainer(spec, mesh);
  std::int64_t bytes = 0;
  trainer.executor().on_action = [&](const specs::Action& action) {
    if (action.kind == specs::ActionKind::backward)
      bytes = tensor_memory().current_of(specs::MemoryClass::activations);
  };
  const std::int64_t before = tensor_memory().current_of(specs::MemoryClass::activations);
  trainer.step(batch(29));
  return bytes - before;
}

TEST(Recompute, SelectiveDropsTheSoftmaxOfUnfusedAttentionAndNothingOfFlash) {
  install_counting_allocator();
  const std::vector<specs::RecomputationRun> selective{{.layers = 4, .mode = Recomputation::selective}};
  const std::int64_t softmax = 8 * sequences * gpt().attention.heads * length * length;
  EXPECT_EQ(kept(four_layers(AttentionImplementation::unfused, {})) -
                kept(four_layers(AttentionImplementation::unfused, selective)),
            4 * softmax);
  EXPECT_EQ(kept(four_layers(AttentionImplementation::flash, {})),
            kept(four_layers(AttentionImplementation::flash, selective)));
}

/// Attention dropout costs no memory: its masks are made anew.
TEST(Recompute, DropoutOfAttentionWeightsKeepsNothing) {
  install_counting_allocator();
  for (const auto attention : {AttentionImplementation::flash, AttentionImplementation::unfused}) {
    TrainerSpec spec = four_layers(attention, {});
    const std::int64_t without = kept(spec);
    spec.training.attention_dropout = 0.5;
    EXPECT_EQ(kept(spec), without);
  }
}

TEST(Recompute, AllAttentionKernelsGiveTheSameGradients) {
  const Mesh mesh = Mesh::single();
  for (const double dropout : {0.0, 0.3}) {
    std::vector<at::Tensor> gradients;
    std::vector<double> losses;
    for (const auto attention : {AttentionImplementation::flash, AttentionImplementation::unfused}) {
      specs::ModelSpec model = llama();
      TrainerSpec spec = single_process(model);
      spec.training.attention = attention;
      spec.training.attention_dropout = dropout;
      Trainer trainer(spec, mesh);
      losses.push_back(trainer.compute_gradients(batch(29)).loss);
      gradients.push_back(trainer.parameters().buckets().front().gradients.clone());
    }
    EXPECT_NEAR(losses[0], losses[1], 1e-13);
    EXPECT_LE(gradients[0].sub(gradients[1]).abs().max().item<double>(), 1e-13);
  }
}

}  // namespace
}  // namespace runtime
