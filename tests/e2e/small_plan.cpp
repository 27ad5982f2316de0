#include "tests/e2e/small_plan.h"

#include "specs/plan/placement.h"
#include "specs/plan/plan_check.h"
#include "specs/plan/plan_json.h"
#include "specs/schedule/generate.h"
#include "specs/schedule/text.h"

namespace e2e {
namespace {

constexpr std::int64_t layers = 4;
constexpr std::int64_t global_batch = 8;

specs::ModelSpec small_model(const SmallPlan& small) {
  specs::ModelSpec model;
  model.name = "small";
  model.layers = layers;
  model.hidden = 32;
  model.attention.heads = 4;
  model.attention.kv_heads = 4;
  model.attention.head_dim = 8;
  model.attention.qkv_bias = true;
  model.attention.output_bias = true;
  model.feed_forward.hidden = small.feed_forward_hidden;
  model.feed_forward.bias = true;
  model.vocabulary = 256;
  model.vocabulary_multiple = 128;
  model.positions = 32;
  model.tied_embeddings = small.tied;
  return model;
}

specs::ClusterSpec this_machine(std::int64_t devices) {
  specs::DeviceSpec core;
  core.name = "core";
  core.generation = "cpu";
  core.memory_bytes = std::int64_t{4} << 30;
  core.memory_bytes_per_second = 1e10;
  for (const auto precision :
       {specs::Precision::fp64, specs::Precision::fp32, specs::Precision::bf16, specs::Precision::fp16})
    core.peak_flops[precision] = 1e11;
  specs::NodeSpec node;
  node.name = "localhost";
  node.device = core;
  node.devices = devices;
  node.link = "memory";
  node.link_bytes_per_second = 1e9;
  node.cpu_cores = devices;
  node.host_memory_bytes = std::int64_t{8} << 30;
  specs::ClusterSpec cluster;
  cluster.groups = {{node, 1}};
  cluster.network.kind = specs::NetworkKind::loopback;
  cluster.network.name = "loopback";
  cluster.network.node_bytes_per_second = 1e9;
  cluster.storage.name = "nvme";
  cluster.storage.write_bytes_per_second = 1e9;
  cluster.storage.read_bytes_per_second = 1e9;
  return cluster;
}

specs::TrainingSpec small_training(const SmallPlan& small) {
  specs::TrainingSpec training;
  training.global_batch = global_batch;
  training.sequence_length = 32;
  training.precision = small.precision;
  training.loss_scaling.initial_scale = small.initial_loss_scale;
  training.loss_scaling.minimum_scale = small.minimum_loss_scale;
  training.optimizer.learning_rate = 3e-3;
  training.schedule.warmup_steps = 2;
  if (small.diverges) {
    training.optimizer.type = specs::OptimizerKind::sgd;
    training.optimizer.learning_rate = 1000;
    training.gradient_clip = 0;
  }
  training.steps = small.steps;
  training.checkpoint_every = small.checkpoint_every;
  training.data.evaluation_batches = 2;
  training.data.evaluate_every = small.evaluate_every;
  return training;
}

}  // namespace

specs::Plan make_plan(const SmallPlan& small) {
  specs::RegularPlacement regular;
  regular.tensor = small.tensor;
  regular.pipeline = small.pipeline;
  regular.data = small.data;
  regular.zero.stage = small.zero_stage;
  if (small.offload_eighths > 0)
    regular.offload.optimizer = {specs::OffloadDevice::cpu, small.offload_eighths};
  regular.offload.delayed_update = small.delayed_update;
  regular.schedule = small.schedule;
  regular.virtual_stages = small.virtual_stages;
  regular.recomputation = small.recomputation;
  regular.sequence_parallel = small.sequence_parallel;
  regular.micro_batch = 1;
  regular.accumulation = global_batch / small.data;

  specs::Plan plan;
  plan.generator = "test";
  plan.inputs.name = "small";
  plan.inputs.model = small_model(small);
  plan.world_size = regular.world_size();
  plan.inputs.cluster = this_machine(plan.world_size);
  plan.inputs.training = small_training(small);
  plan.inputs_hash = specs::inputs_hash(plan.inputs);
  plan.placement = specs::regular_placement(regular, layers);
  const auto schedule = specs::generate_schedule(
      plan.placement.schedule, static_cast<std::int32_t>(small.pipeline),
      static_cast<std::int32_t>(small.virtual_stages), static_cast<std::int32_t>(regular.accumulation));
  plan.schedule.generator = std::string(specs::name_of(plan.placement.schedule));
  plan.schedule.generator_version = specs::generator_version(plan.placement.schedule);
  plan.schedule.layout = schedule.layout;
  plan.schedule.replicas = {{regular.accumulation, specs::to_text(schedule)}};
  plan.ranks.ranges = {{.first_rank = 0, .ranks = plan.world_size, .ranks_per_node = plan.world_size}};
  plan.prediction.step_seconds = 0.1;
  return plan;
}

std::string plan_text(const SmallPlan& small) { return specs::write_plan(make_plan(small)); }

std::string training_text() {
  std::string text;
  for (int line = 0; text.size() < 100'000; ++line)
    text += "the quick brown fox number " + std::to_string(line % 97) + " jumps over the lazy dog\n";
  return text;
}

}  // namespace e2e
