// What the cost model says of a rank's memory under each ZeRO stage, and of all that changes it there.
#include <vector>

#include <gtest/gtest.h>

#include "tests/memory/memory_fixture.h"

namespace runtime {
namespace {

using numerics::TinyModel;
using numerics::TrainingCase;

class ZeroMemory : public MemoryTest {
 protected:
  /// Two replicas; GPT with a tied table, or Llama with two.
  static MemoryCase replicas(TinyModel model, std::int64_t zero_stage) {
    TrainingCase training;
    training.model = model;
    training.tied = model == TinyModel::gpt;
    training.optimizer = specs::OptimizerKind::adamw;
    training.fixed_layers = 4;
    training.sequence_length = 24;
    training.data = 2;
    training.micro_batches = 2;
    training.zero.stage = zero_stage;
    training.buckets = {.gradient_bucket_bytes = 1 << 20, .gather_bucket_bytes = 1 << 20};
    return {training};
  }
};

TEST_F(ZeroMemory, OfEachStageIsPredicted) {
  std::vector<MemoryCase> cases;
  for (const TinyModel model : {TinyModel::gpt, TinyModel::llama})
    for (const specs::Precision precision :
         {specs::Precision::fp64, specs::Precision::fp32, specs::Precision::bf16, specs::Precision::fp16})
      for (const std::int64_t stage : {0, 1, 2, 3}) {
        cases.push_back(replicas(model, stage));
        cases.back().training.precision = precision;
        if (precision != specs::Precision::bf16) continue;
        cases.push_back(cases.back());
        cases.back().training.gradient_precision = specs::Precision::bf16;
      }
  expect_all_predicted(cases);
}

TEST_F(ZeroMemory, FollowsBucketsPrefetchKeptUnitsAndAccumulation) {
  std::vector<MemoryCase> cases;
  for (const TinyModel model : {TinyModel::gpt, TinyModel::llama}) {
    const auto add = [&](std::int64_t stage, auto&& change) {
      cases.push_back(replicas(model, stage));
      change(cases.back());
    };
    for (const std::int64_t stage : {2, 3})
      for (const std::int64_t bytes : {std::int64_t{0}, std::int64_t{256} << 10, std::int64_t{25} << 20})
        add(stage, [&](MemoryCase& c) {
          c.training.buckets.gradient_bucket_bytes = c.training.buckets.gather_bucket_bytes = bytes;
        });
    for (const std::int64_t prefetch : {0, 3})
      add(3, [&](MemoryCase& c) { c.training.buckets.prefetch_units = prefetch; });
    for (const std::int64_t kept : {1, 4}) add(3, [&](MemoryCase& c) { c.training.zero.kept_units = kept; });
    add(2, [](MemoryCase& c) { c.training.micro_batches = 1; });
    add(3, [](MemoryCase& c) { c.training.data = 4, c.training.micro_batches = 1; });
    add(3, [](MemoryCase& c) { c.vocabulary = 16384; });
    add(3, [](MemoryCase& c) { c.training.tensor = 2, c.training.sequence_parallel = true; });
    add(3, [](MemoryCase& c) { c.training.recomputation = specs::Recomputation::full; });
  }
  expect_all_predicted(cases);
}

}  // namespace
}  // namespace runtime
