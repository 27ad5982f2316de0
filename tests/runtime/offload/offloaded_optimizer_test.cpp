// An optimizer whose state lies on the host: what leaves the device, when the work is done, and what a
// delayed update changes.
#include <algorithm>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "runtime/mesh/mesh.h"
#include "runtime/monitor/tensor_memory.h"
#include "tests/runtime/model/tiny_models.h"

namespace runtime {
namespace {

using specs::MemoryClass;

class OffloadedOptimizer : public testing::Test {
 protected:
  void SetUp() override {
    install_counting_allocator();
    at::set_num_threads(1);
  }
};

TrainerSpec offloaded(specs::Precision precision, specs::OptimizerKind optimizer, std::int64_t eighths) {
  TrainerSpec spec = single_process(gpt());
  spec.training.precision = precision;
  spec.training.gradient_precision =
      precision == specs::Precision::fp64 ? specs::Precision::fp64 : specs::Precision::fp32;
  spec.training.optimizer.type = optimizer;
  spec.training.steps = 10;
  specs::PipelineStage& stage = spec.placement.stages.front();
  if (eighths > 0) stage.offload.optimizer = {specs::OffloadDevice::cpu, eighths};
  spec.placement.buckets.gradient_bucket_bytes = 4096;
  return spec;
}

/// Bytes that the trainer holds between steps.
TensorMemory held_by(const TrainerSpec& spec, const FaultSwitches& faults = {}) {
  const TensorMemory before = tensor_memory();
  const Mesh mesh = Mesh::single();
  Trainer trainer(spec, mesh, {.faults = faults});
  trainer.step(batch(29));
  TensorMemory held = tensor_memory();
  held.current_bytes -= before.current_bytes;
  held.host.current_bytes -= before.host.current_bytes;
  for (std::size_t i = 0; i < memory_classes; ++i) {
    held.current_bytes_of[i] -= before.current_bytes_of[i];
    held.host.current_bytes_of[i] -= before.host.current_bytes_of[i];
  }
  return held;
}

std::int64_t elements_of(const TrainerSpec& spec) {
  const Mesh mesh = Mesh::single();
  Trainer trainer(spec, mesh);
  std::int64_t elements = 0;
  for (const Bucket& bucket : trainer.parameters().buckets()) elements += bucket.numel;
  return elements;
}

TEST_F(OffloadedOptimizer, LeavesTheDeviceToTheByteAndHasCopiesOfItsOwnOnTheHost) {
  for (const auto precision : {specs::Precision::fp64, specs::Precision::fp32, specs::Precision::bf16})
    for (const auto optimizer : {specs::OptimizerKind::adamw, specs::OptimizerKind::sgd})
      for (const std::int64_t eighths : {1, 5, 8}) {
        const TensorMemory resident = held_by(offloaded(precision, optimizer, 0));
        const TensorMemory moved = held_by(offloaded(precision, optimizer, eighths));
        const std::int64_t elements = elements_of(offloaded(precision, optimizer, eighths)) / 8 * eighths;
        const std::int64_t state = precision == specs::Precision::fp64 ? 8 : 4;
        const std::int64_t moments = (optimizer == specs::OptimizerKind::adamw ? 2 : 1) * state * elements;
        const std::int64_t masters = precision == specs::Precision::bf16 ? 4 * elements : 0;
        EXPECT_EQ(resident.current_bytes - moved.current_bytes, moments + masters);
        EXPECT_EQ(resident.current_of(MemoryClass::optimizer_state) -
                      moved.current_of(MemoryClass::optimizer_state),
                  moments);
        EXPECT_EQ(resident.host.current_bytes, 0);
        EXPECT_EQ(moved.host.current_of(MemoryClass::optimizer_state), moments);
        EXPECT_EQ(moved.host.current_of(MemoryClass::master_weights), state * elements);
        EXPECT_EQ(moved.host.current_of(MemoryClass::gradients), state * elements);
        EXPECT_EQ(moved.host.current_bytes, moments + 2 * state * elements);
      }
}

TEST_F(OffloadedOptimizer, AnAliasOfTheDevicesMemoryIsNoticed) {
  const TrainerSpec spec = offloaded(specs::Precision::bf16, specs::OptimizerKind::adamw, 8);
  const TensorMemory right = held_by(spec), wrong = held_by(spec, {.offload_aliases_device = true});
  EXPECT_NE(right.current_bytes, wrong.current_bytes);
  EXPECT_EQ(wrong.host.current_of(MemoryClass::gradients), 0);
}

/// Every bucket's copy is handed over before the backward pass has ended.
TEST_F(OffloadedOptimizer, GradientsAreOnTheirWayWhileBackwardGoesOn) {
  const Mesh mesh = Mesh::single();
  TrainerSpec spec = offloaded(specs::Precision::fp32, specs::OptimizerKind::adamw, 8);
  spec.training.gradient_clip = 0;
  Trainer trainer(spec, mesh);
  std::int64_t before = -1, after = -1;
  trainer.executor().on_action = [&](const specs::Action& action) {
    if (action.kind == specs::ActionKind::backward) before = trainer.optimizer().host_jobs();
    if (action.kind == specs::ActionKind::reduce_gradients) after = trainer.optimizer().host_jobs();
  };
  trainer.step(batch(29));
  EXPECT_EQ(before, 0);
  EXPECT_GT(after, 1);
  // Without clipping the copy's job updates, too: none follows.
  EXPECT_EQ(trainer.optimizer().host_jobs(),
            static_cast<std::int64_t>(trainer.parameters().buckets().size()));
}

/// One step behind: the gradients of a step are those at the weights that lack the update before. Emulated by
/// two trainers without offload, of which one computes gradients at the weights that the other had.
TEST_F(OffloadedOptimizer, ADelayedUpdateIsOneStepBehind) {
  const Mesh mesh = Mesh::single();
  for (const auto precision : {specs::Precision::fp32, specs::Precision::bf16}) {
    TrainerSpec spec = offloaded(precision, specs::OptimizerKind::adamw, 8);
    spec.placement.stages.front().offload.delayed_update = true;
    Trainer delayed(spec, mesh);
    const TrainerSpec plain = offloaded(precision, specs::OptimizerKind::adamw, 0);
    Trainer ahead(plain, mesh), behind(plain, mesh);
    const auto copy = [](Trainer& from, Trainer& to, auto member) {
      for (std::size_t i = 0; i < from.parameters().buckets().size(); ++i)
        (to.parameters().buckets()[i].*member).copy_(from.parameters().buckets()[i].*member);
    };
    for (int step = 0; step < 5; ++step) {
      const StepResult found = delayed.step(batch(29));
      behind.optimizer().set_updates(step);
      const StepResult expected = behind.compute_gradients(batch(29));
      EXPECT_EQ(found.loss, expected.loss) << step;
      copy(ahead, behind, &Bucket::values);
      copy(behind, ahead, &Bucket::gradients);
      ahead.optimizer().update(found.learning_rate,
                               std::min(1.0, plain.training.gradient_clip / (expected.gradient_norm + 1e-6)));
    }
    delayed.optimizer().finish_delayed();
    for (std::size_t i = 0; i < ahead.parameters().buckets().size(); ++i)
      EXPECT_TRUE(
          at::equal(delayed.parameters().buckets()[i].values, ahead.parameters().buckets()[i].values));
  }
}

}  // namespace
}  // namespace runtime
