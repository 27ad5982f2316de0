#include "tests/stack_profile/random_plans.h"

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cost_models/estimate.h"
#include "planner/plan/plan_assembly.h"
#include "planner/space/written_out_choices.h"
#include "planner/space/written_out_space.h"
#include "specs/language/catalog.h"
#include "specs/language/read_experiment.h"

namespace planner {

namespace {

specs::Plan assembled(const specs::Experiment& experiment, const specs::Placement& placement) {
  return assemble_plan(experiment, cost_models::Estimator(experiment), placement);
}

}  // namespace

specs::Experiment RandomPlans::experiment() {
  const bool llama = any(std::vector{false, true});
  const int layers = any(std::vector{2, 3, 4, 6, 8});
  // A tensor degree may cut key-value heads, or copy them.
  const auto [heads, kv_heads] = any(std::vector<std::pair<int, int>>{{8, 8}, {8, 2}, {6, 3}});
  const bool tied = any(std::vector{false, true});
  const auto [nodes, devices] = any(std::vector<std::pair<int, int>>{
      {1, 1}, {1, 2}, {1, 3}, {1, 4}, {2, 2}, {1, 6}, {3, 2}, {1, 8}, {2, 4}, {4, 2}, {2, 4}, {1, 8}});
  const int global_batch = any(std::vector{8, 12});
  const auto precision = any(std::vector<std::string_view>{"fp64", "fp64", "fp64", "fp32", "bf16", "fp16"});
  const auto attention = any(std::vector<std::string_view>{"flash", "unfused"});
  const auto optimizer = any(std::vector<std::string_view>{"adamw", "sgd"});
  const double gradient_clip = any(std::vector{0.0, 0.5});
  const double dropout = any(std::vector{0.0, 0.1});
  const double attention_dropout = any(std::vector{0.0, 0.1});
  const std::string text = fmt::format(
      R"([model]
family = "{}"
layers = {}
hidden = 24
heads = {}
kv_heads = {}
head_dim = 4
ffn_hidden = 48
vocabulary = 259
tied_embeddings = {}
[cluster]
node = {{ preset = "localhost", devices = {} }}
nodes = {}
{}
[training]
stack = "dsrun"
global_batch = {}
sequence_length = 24
precision = "{}"
attention = "{}"
optimizer = {{ type = "{}", lr = 1e-3 }}
lr_schedule = {{ warmup_steps = 2 }}
gradient_clip = {}
dropout = {}
attention_dropout = {}
steps = 10
[search]
micro_batch_group = [0, 3, 4, 6, 8]
delayed_update = [false, true]
)",
      llama ? "llama" : "gpt", layers, heads, kv_heads, tied, devices, nodes,
      nodes > 1 ? "network = \"ethernet-25g\"" : "", global_batch, precision, attention, optimizer,
      gradient_clip, dropout, attention_dropout);
  const specs::Result<specs::Experiment> read = specs::read_experiment_text(text, "random.toml");
  if (!read) throw std::logic_error(read.diagnostics.render());
  return *read;
}

specs::Plan RandomPlans::next() {
  const specs::Result<specs::StackSpec> stack = specs::catalog_stack("dsrun");
  if (!stack) throw std::logic_error(stack.diagnostics.render());
  for (;;) {
    const specs::Experiment experiment = this->experiment();
    const WrittenOutSpace space(experiment, *stack);
    if (space.meshes().empty()) continue;
    const WrittenOutMesh mesh = any(space.meshes());
    specs::RegularPlacement point = mesh.corner;
    point.micro_batch = any(mesh.micro_batches);
    point.accumulation = experiment.training.global_batch / point.data / point.micro_batch;
    const WrittenOutSchedule schedule = any(space.schedules(point.pipeline, point.accumulation));
    point.schedule = schedule.kind;
    point.virtual_stages = schedule.virtual_stages;
    point.micro_batch_group = schedule.micro_batch_group;
    point.sequence_parallel = any(space.sequence_parallel(point));
    point.modules = any(space.modules(point));
    point.recomputation = any(space.recomputations());
    point.zero = any(space.zeros(point));
    point.offload.optimizer = any(space.offload(OffloadedPart::optimizer, point, point.zero));
    point.offload.parameters = any(space.offload(OffloadedPart::parameters, point, point.zero));
    point.offload.activations = any(space.offload(OffloadedPart::activations, point, point.zero));
    point.offload.delayed_update = any(space.delayed_updates(point.offload.optimizer));
    point.local_steps = any(space.local_steps(point, point.zero));
    return assembled(experiment, WrittenOutChoices(experiment, *stack).draw(point, random_));
  }
}

bool delays_everything(const specs::Plan& plan) {
  const auto& stages = plan.placement.stages;
  return std::all_of(stages.begin(), stages.end(), [](const specs::PipelineStage& stage) {
    return stage.offload.delayed_update && stage.offload.optimizer.eighths == 8;
  });
}

specs::Plan single_rank(const specs::Plan& plan) {
  specs::Experiment experiment;
  experiment.name = plan.inputs.name;
  experiment.model = plan.inputs.model;
  experiment.training = plan.inputs.training;
  experiment.cluster = plan.inputs.cluster;
  experiment.cluster.groups.front().nodes = 1;
  experiment.cluster.groups.front().node.devices = 1;
  specs::RegularPlacement whole;
  whole.micro_batch = experiment.training.global_batch;
  if (plan.placement.stages.front().offload.delayed_update)
    whole.offload = {.optimizer = {specs::OffloadDevice::cpu, 8}, .delayed_update = true};
  return assembled(experiment, specs::regular_placement(whole, specs::block_count(experiment.model)));
}

std::string describe(const specs::Plan& plan) {
  const specs::Placement& placement = plan.placement;
  const specs::PipelineStage& stage = placement.stages.front();
  std::string cuts;
  for (const specs::PipelineStage& each : placement.stages) cuts += fmt::format(" {}", each.units.end);
  return fmt::format(
      "{} {} {} {} on {} x {} devices: tp{} pp{} dp{} {} {} v{} {}x{}{} zero {} {} offload {}/8 "
      "recompute {} output {} dropout {} {} group {}{} cuts{}",
      plan.inputs.model.tied_embeddings ? "tied" : "untied", plan.inputs.model.norm_bias ? "gpt" : "llama",
      specs::name_of(plan.inputs.training.precision), specs::name_of(plan.inputs.training.optimizer.type),
      plan.inputs.cluster.groups.front().nodes, plan.inputs.cluster.groups.front().node.devices,
      stage.mesh.tensor, placement.pipeline_ranks(), stage.mesh.data, specs::to_string(stage.mesh.order),
      specs::name_of(placement.schedule), placement.virtual_stages, placement.accumulation,
      placement.micro_batch, placement.sequence_parallel ? " sp" : "", stage.zero.stage,
      specs::name_of(stage.zero.scope), stage.offload.optimizer.eighths,
      stage.recomputation.empty() ? "none" : specs::name_of(stage.recomputation.front().mode),
      specs::name_of(stage.modules.output_mode), plan.inputs.training.dropout,
      plan.inputs.training.attention_dropout, placement.micro_batch_group,
      stage.offload.delayed_update ? " delayed" : "", cuts);
}

}  // namespace planner
