#include "specs/plan/plan_keys.h"

#include <algorithm>
#include <string>
#include <utility>

#include "specs/language/section_keys.h"

namespace specs {
namespace {

constexpr std::int64_t most = std::int64_t{1} << 50;
constexpr IntegerRange count{0, most};
constexpr IntegerRange degree{1, most};
constexpr IntegerRange step{-most, most};
constexpr IntegerRange rank_or_all{-1, most};

std::vector<std::string> axis_orders() {
  AxisOrder order = default_axis_order;
  std::sort(order.begin(), order.end());
  std::vector<std::string> orders;
  do orders.push_back(to_string(order));
  while (std::next_permutation(order.begin(), order.end()));
  return orders;
}

void visit_mesh(KeyVisitor& visitor, StageMesh& mesh) {
  visitor.integer({"tensor", "ranks along the tensor axis"}, mesh.tensor, degree);
  visitor.integer({"context", "ranks along the context axis"}, mesh.context, degree);
  visitor.integer({"data", "data-parallel replicas"}, mesh.data, degree);
  visitor.integer({"expert", "ranks over which the experts are dealt out"}, mesh.expert, degree);
  visitor.integer({"expert_tensor", "ranks along the tensor axis inside an expert"}, mesh.expert_tensor,
                  degree);
  std::string order = to_string(mesh.order);
  visitor.one_of({"order", "in which consecutive ranks fill the axes, innermost first"}, order,
                 axis_orders());
  mesh.order = axis_order_from(order).value_or(default_axis_order);
  visitor.choice({"context_mode", "how keys and values reach the ranks of the context axis"},
                 mesh.context_mode);
}

void visit_devices(KeyVisitor& visitor, DeviceSet& devices) {
  visitor.integer({"first", "first rank"}, devices.first, count);
  visitor.integer({"block", "consecutive ranks of one run"}, devices.block, degree);
  visitor.integer({"stride", "ranks from the start of one run to that of the next; 0: there is one run"},
                  devices.stride, count);
  visitor.integer({"blocks", "runs"}, devices.blocks, degree);
}

void visit_modules(KeyVisitor& visitor, ModuleTreatments& modules) {
  visitor.integer({"attention_tensor", "tensor degree of the attention; 0: the stage's"},
                  modules.attention_tensor, count);
  visitor.integer({"feed_forward_tensor", "tensor degree of the FFN; 0: the stage's"},
                  modules.feed_forward_tensor, count);
  visitor.integer({"embedding_tensor", "tensor degree of the embedding; 0: the stage's"},
                  modules.embedding_tensor, count);
  visitor.integer({"output_tensor", "tensor degree of the output layer; 0: the stage's"},
                  modules.output_tensor, count);
  visitor.choice({"attention_work", "of copies of the attention"}, modules.attention_work);
  visitor.choice({"feed_forward_work", "of copies of the FFN"}, modules.feed_forward_work);
  visitor.choice({"embedding_work", "of copies of the embedding"}, modules.embedding_work);
  visitor.choice({"output_mode", "how the output layer is split"}, modules.output_mode);
}

/// A set of bits as the list of their names.
void visit_recomputed_modules(KeyVisitor& visitor, std::uint32_t& bits) {
  std::vector<RecomputedModule> modules;
  for (const auto& [module, name] : EnumNames<RecomputedModule>::names)
    if ((bits & static_cast<std::uint32_t>(module)) != 0) modules.push_back(module);
  visitor.choice_list({"modules", "selective: what runs again; empty: core attention"}, modules);
  bits = 0;
  for (RecomputedModule module : modules) bits |= static_cast<std::uint32_t>(module);
}

void visit_recomputation(KeyVisitor& visitor, RecomputationRun& run) {
  visitor.integer({"layers", "consecutive layers treated alike"}, run.layers, degree);
  visitor.choice({"mode", "what of them is computed again in the backward pass"}, run.mode);
  visit_recomputed_modules(visitor, run.modules);
  visitor.integer({"block_layers", "full: layers from one checkpoint to the next"}, run.block_layers, degree);
}

void visit_zero(KeyVisitor& visitor, ZeroTreatment& zero) {
  visitor.integer({"stage", "0 nothing sharded, 1 optimizer states, 2 + gradients, 3 + parameters"},
                  zero.stage, {0, 3});
  visitor.choice({"scope", "ranks that share the shards"}, zero.scope);
  visitor.integer({"shard_ranks", "ranks of a shard group; 0: as the scope says"}, zero.shard_ranks, count);
  visitor.integer({"kept_units", "stage 3: last units that stay gathered from forward to backward"},
                  zero.kept_units, count);
}

void visit_offload_treatment(KeyVisitor& visitor, OffloadTreatment& treatment) {
  visitor.choice({"device", "where it goes"}, treatment.device);
  visitor.integer({"eighths", "share that goes there"}, treatment.eighths, {0, 8});
}

void visit_offload(KeyVisitor& visitor, StageOffload& offload) {
  visitor.table({"optimizer", "optimizer states, master weights included"},
                [&](KeyVisitor& keys) { visit_offload_treatment(keys, offload.optimizer); });
  visitor.table({"parameters", "parameters"},
                [&](KeyVisitor& keys) { visit_offload_treatment(keys, offload.parameters); });
  visitor.table({"activations", "activations of whole layers"},
                [&](KeyVisitor& keys) { visit_offload_treatment(keys, offload.activations); });
  visitor.flag({"delayed_update", "the offloaded update of a step may end during the next"},
               offload.delayed_update);
}

void visit_stage_run(KeyVisitor& visitor, StageRun& run) {
  visitor.integer({"count", "consecutive stages this entry stands for"}, run.count, {1, most_plan_stages});
  visitor.table({"step", "what a stage adds to the one before it"}, [&](KeyVisitor& keys) {
    keys.integer({"pipeline_rank", "to the pipeline rank"}, run.pipeline_rank_step, step);
    keys.integer({"first_device", "to the first rank of the devices"}, run.first_device_step, step);
    keys.integer({"units", "to both ends of the units"}, run.unit_step, step);
  });
  PipelineStage& stage = run.stage;
  visitor.integer({"pipeline_rank", "that runs the stage"}, stage.pipeline_rank, count);
  visitor.integer({"device_group", "index into the cluster's groups"}, stage.device_group, count);
  visitor.table({"devices", "its ranks, as runs of consecutive ones"},
                [&](KeyVisitor& keys) { visit_devices(keys, stage.devices); });
  visitor.table({"mesh", "the axes over its ranks"}, [&](KeyVisitor& keys) { visit_mesh(keys, stage.mesh); });
  visitor.table({"units",
                 "its part of the model: 0 the embedding, 2l+1 and 2l+2 the attention and FFN of block l, "
                 "then the output layer"},
                [&](KeyVisitor& keys) {
                  keys.integer({"first", "first unit"}, stage.units.first, count);
                  keys.integer({"end", "one past the last unit"}, stage.units.end, count);
                });
  visitor.table({"modules", "treatment of each kind of module"},
                [&](KeyVisitor& keys) { visit_modules(keys, stage.modules); });
  visitor.list_of_tables({"recomputation", "of its layers, front to back; empty: none"}, stage.recomputation,
                         visit_recomputation);
  visitor.table({"zero", "sharding over the replicas"},
                [&](KeyVisitor& keys) { visit_zero(keys, stage.zero); });
  visitor.table({"offload", "to host memory or NVMe"},
                [&](KeyVisitor& keys) { visit_offload(keys, stage.offload); });
}

void visit_buckets(KeyVisitor& visitor, BucketSizes& buckets) {
  visitor.integer({"gradient_bucket_bytes", "gradients reduced together; 0: one bucket of everything"},
                  buckets.gradient_bucket_bytes, count);
  visitor.integer({"gather_bucket_bytes", "parameters gathered together; 0: one bucket of everything"},
                  buckets.gather_bucket_bytes, count);
  visitor.integer({"minimum_message_bytes", "smaller tensors never travel alone"},
                  buckets.minimum_message_bytes, count);
  visitor.integer({"prefetch_units", "ZeRO-3: units gathered ahead of use"}, buckets.prefetch_units, count);
}

void visit_time_entry(KeyVisitor& visitor, TimeEntry& entry) {
  visitor.choice({"term", "what the time goes to"}, entry.term);
  visitor.integer({"pipeline_rank", "-1: the critical path of the whole job"}, entry.pipeline_rank,
                  rank_or_all);
  visitor.integer({"stage", "-1: all stages of the pipeline rank"}, entry.stage, rank_or_all);
  visitor.number({"exposed_seconds", "part of the step"}, entry.exposed_seconds, {});
  visitor.number({"busy_seconds", "while the resource works, hidden or not"}, entry.busy_seconds, {});
  visitor.number({"exposed_seconds_low", "lower end of the 80 % interval; both 0: not known"},
                 entry.exposed_seconds_low, {});
  visitor.number({"exposed_seconds_high", "upper end"}, entry.exposed_seconds_high, {});
  visitor.number({"flops", "of one rank in the step"}, entry.flops, {});
  visitor.number({"bytes", "moved by one rank in the step"}, entry.bytes, {});
}

void visit_memory_entry(KeyVisitor& visitor, MemoryEntry& entry) {
  visitor.choice({"class", "of memory"}, entry.memory_class);
  visitor.choice({"location", "where it is"}, entry.location);
  visitor.integer({"pipeline_rank", "of one rank of which, at its peak"}, entry.pipeline_rank, count);
  visitor.integer({"bytes", "of it"}, entry.bytes, count);
}

void visit_region(KeyVisitor& visitor, CertificateRegion& region) {
  visitor.choice({"kind", "how the region was settled"}, region.kind);
  std::string where = to_string(region.dimensions);
  visitor.text({"where", "its values of the dimensions, all values of those that are not named"}, where);
  if (visitor.reads()) region.dimensions = region_dimensions_from(where);
  visitor.text({"candidates", "exact count, a decimal integer"}, region.candidates);
  visitor.text({"rule", "name of the constraint or bound that settles it"}, region.rule);
  visitor.text({"reason", "infeasible: the failing equation", {}, true}, region.reason);
  visitor.number({"bound", "bounded: no member is below it, in the unit of the objective", {}, true},
                 region.bound, {});
  visitor.number({"best", "priced, optimized: smallest objective of the members that fit", {}, true},
                 region.best, {});
}

void visit_runner_up(KeyVisitor& visitor, RunnerUp& runner_up) {
  visitor.number({"objective", "in the unit of the plan's"}, runner_up.objective, {});
  visitor.number({"step_seconds", "time of a step"}, runner_up.step_seconds, {});
  visitor.number({"cost_per_step_dollars", "price of a step"}, runner_up.cost_per_step_dollars, {});
  visitor.number({"energy_per_step_joules", "energy of a step"}, runner_up.energy_per_step_joules, {});
  visitor.integer({"peak_device_bytes", "largest over pipeline ranks"}, runner_up.peak_device_bytes, count);
  visitor.text({"trade", "what it gives and takes against the plan"}, runner_up.trade);
  visitor.table({"placement", "of the runner-up"}, [&](KeyVisitor& keys) {
    std::vector<StageRun> runs = fold(runner_up.placement.stages);
    visit_keys(keys, runner_up.placement, runs);
  });
}

void visit_schedule(KeyVisitor& visitor, PlanSchedule& schedule) {
  visitor.one_of({"generator", "that made it"}, schedule.generator, all_names<ScheduleKind>());
  visitor.integer({"generator_version", "of that generator"}, schedule.generator_version, degree);
  visitor.choice({"layout", "which pipeline rank holds which stage"}, schedule.layout);
  visitor.list_of_tables(
      {"replicas", "one for each distinct share of the micro-batches"}, schedule.replicas,
      [](KeyVisitor& keys, ReplicaSchedule& replica) {
        keys.integer({"micro_batches", "of such a replica in one step"}, replica.micro_batches, degree);
        keys.text_list({"rank_actions", "compute actions of each pipeline rank, as text"},
                       replica.rank_actions);
      });
}

void visit_ranks(KeyVisitor& visitor, RankMapping& ranks) {
  visitor.list_of_tables(
      {"ranges", "consecutive ranks on consecutive devices"}, ranks.ranges,
      [](KeyVisitor& keys, HostRange& range) {
        keys.integer({"first_rank", "of the range"}, range.first_rank, count);
        keys.integer({"ranks", "in the range"}, range.ranks, degree);
        keys.integer({"device_group", "index into the cluster's groups"}, range.device_group, count);
        keys.integer({"first_node", "in the group"}, range.first_node, count);
        keys.integer({"first_device", "in the first node"}, range.first_device, count);
        keys.integer({"ranks_per_node", "of the nodes of the range"}, range.ranks_per_node, degree);
      });
  visitor.list_of_tables(
      {"exceptions", "ranks for which the ranges do not hold"}, ranks.exceptions,
      [](KeyVisitor& keys, RankException& exception) {
        keys.integer({"rank", "that is elsewhere"}, exception.rank, count);
        keys.integer({"device_group", "index into the cluster's groups"}, exception.device_group, count);
        keys.integer({"node", "in the group"}, exception.node, count);
        keys.integer({"device", "in the node"}, exception.device, count);
      });
}

void visit_inputs(KeyVisitor& visitor, Experiment& inputs) {
  visit_keys(visitor, inputs);
  visitor.list_of_tables({"sweep", "keys that vary over the experiment's matrix"}, inputs.sweep,
                         [](KeyVisitor& keys, SweepAxis& axis) {
                           keys.text({"path", "of the key"}, axis.path);
                           keys.text_list({"values", "TOML text of each value"}, axis.values);
                         });
}

}  // namespace

void visit_keys(KeyVisitor& visitor, Placement& placement, std::vector<StageRun>& runs) {
  visitor.integer({"micro_batch", "sequences a replica works on at once"}, placement.micro_batch, degree);
  visitor.integer({"accumulation", "micro-batches of a replica in one step, where shares are equal"},
                  placement.accumulation, degree);
  visitor.choice({"schedule", "of the pipeline"}, placement.schedule);
  visitor.integer({"virtual_stages", "stages a pipeline rank holds"}, placement.virtual_stages, degree);
  visitor.integer({"micro_batch_group",
                   "interleaved: micro-batches that go round together; 0: as many as pipeline ranks"},
                  placement.micro_batch_group, count);
  visitor.flag({"sequence_parallel", "norms and dropout split along the sequence"},
               placement.sequence_parallel);
  visitor.integer({"local_steps", "updates between synchronisations"}, placement.local_steps, degree);
  visitor.table({"buckets", "sizes of messages"},
                [&](KeyVisitor& keys) { visit_buckets(keys, placement.buckets); });
  visitor.list_of_tables({"stages", "of the pipeline, in the order the data flows"}, runs, visit_stage_run);
  visitor.list_of_tables(
      {"replica_shares", "unequal shares of the batch; empty: equal"}, placement.replica_shares,
      [](KeyVisitor& keys, ReplicaShare& share) {
        keys.integer({"replicas", "consecutive ones"}, share.replicas, degree);
        keys.integer({"micro_batches", "of each of them in one step"}, share.micro_batches, degree);
        keys.integer({"device_group", "index into the cluster's groups"}, share.device_group, count);
      });
  if (!visitor.reads()) return;
  std::int64_t stages = 0;
  for (const StageRun& run : runs) stages = std::min(stages + run.count, most_plan_stages + 1);
  placement.stages = stages <= most_plan_stages ? unfold(runs) : std::vector<PipelineStage>();
}

void visit_keys(KeyVisitor& visitor, CostBreakdown& cost) {
  visitor.number({"step_seconds", "time of a step"}, cost.step_seconds, {});
  visitor.number({"step_seconds_low", "lower end of the 80 % interval"}, cost.step_seconds_low, {});
  visitor.number({"step_seconds_high", "upper end"}, cost.step_seconds_high, {});
  visitor.number({"tokens_per_second", "of the whole job"}, cost.tokens_per_second, {});
  visitor.number({"model_flops_per_step", "forward and backward, causal attention, no recomputation"},
                 cost.model_flops_per_step, {});
  visitor.number({"noncausal_model_flops_per_step", "the same, the whole attention square counted"},
                 cost.noncausal_model_flops_per_step, {});
  visitor.number({"model_flops_utilization", "of the used devices' dense peak, a fraction"},
                 cost.model_flops_utilization, {});
  visitor.number({"cost_per_step_dollars", "price of a step"}, cost.cost_per_step_dollars, {});
  visitor.number({"energy_per_step_joules", "energy of a step"}, cost.energy_per_step_joules, {});
  visitor.integer({"peak_device_bytes", "largest over pipeline ranks"}, cost.peak_device_bytes, count);
  visitor.integer({"peak_host_bytes_per_node", "pinned included"}, cost.peak_host_bytes_per_node, count);
  visitor.integer({"peak_nvme_bytes_per_node", "offloaded state"}, cost.peak_nvme_bytes_per_node, count);
  visitor.number({"goodput_fraction", "useful share of wall time under failures and checkpoints"},
                 cost.goodput_fraction, fraction);
  visitor.integer({"checkpoint_bytes", "of one checkpoint"}, cost.checkpoint_bytes, count);
  visitor.number({"checkpoint_seconds", "to write one"}, cost.checkpoint_seconds, {});
  visitor.number({"checkpoint_stall_seconds", "for which training waits"}, cost.checkpoint_stall_seconds, {});
  visitor.integer({"checkpoint_every_steps", "chosen for goodput; 0: not asked"}, cost.checkpoint_every_steps,
                  count);
  visitor.number({"run_seconds",
                  "of all tokens in wall time, so over goodput_fraction; 0: not asked, as the next three"},
                 cost.run_seconds, {});
  visitor.number({"run_device_hours", "of that wall time"}, cost.run_device_hours, {});
  visitor.number({"run_cost_dollars", "of that wall time"}, cost.run_cost_dollars, {});
  visitor.number({"run_energy_joules", "of that wall time"}, cost.run_energy_joules, {});
  visitor.list_of_tables({"time", "term by term"}, cost.time, visit_time_entry);
  visitor.list_of_tables({"memory", "class by class"}, cost.memory, visit_memory_entry);
}

void visit_keys(KeyVisitor& visitor, Certificate& certificate) {
  visitor.text({"space_candidates", "exact count of the space, a decimal integer"},
               certificate.space_candidates);
  visitor.text({"priced_candidates", "priced one by one"}, certificate.priced_candidates);
  visitor.text({"infeasible_candidates", "that violate a constraint"}, certificate.infeasible_candidates);
  visitor.text({"bounded_candidates", "that a lower bound excludes"}, certificate.bounded_candidates);
  visitor.number({"gap_fraction", "the optimum is at most this fraction below the plan"}, certificate.gap,
                 fraction);
  visitor.flag({"complete", "false: the search was interrupted and the gap is not proven"},
               certificate.complete);
  visitor.text({"method", "of the search"}, certificate.method);
  visitor.list_of_tables({"regions", "that tile the space"}, certificate.regions, visit_region);
}

void visit_keys(KeyVisitor& visitor, Plan& plan) {
  visitor.integer({"format_version", "of this file's format"}, plan.format_version,
                  {plan_format_version, plan_format_version});
  visitor.text({"generator", "the program that made the plan"}, plan.generator);
  visitor.text({"cost_model_version", "constants and formulas that made the prediction"},
               plan.cost_model_version);
  visitor.text({"inputs_hash", "of each section of the inputs"}, plan.inputs_hash);
  visitor.integer({"world_size", "ranks that the plan uses"}, plan.world_size, degree);
  visitor.integer({"idle_devices", "devices of the cluster that it leaves unused"}, plan.idle_devices, count);
  visitor.number({"objective", "seconds, dollars or joules per step, as the inputs' search.objective says"},
                 plan.objective, {});
  visitor.table({"placement", "where every part of the model lives"}, [&](KeyVisitor& keys) {
    std::vector<StageRun> runs = fold(plan.placement.stages);
    visit_keys(keys, plan.placement, runs);
  });
  visitor.table({"schedule", "of the pipeline, compute actions only"},
                [&](KeyVisitor& keys) { visit_schedule(keys, plan.schedule); });
  visitor.table({"ranks", "rank to node and device"},
                [&](KeyVisitor& keys) { visit_ranks(keys, plan.ranks); });
  visitor.list_of_tables({"environment", "variables for the communication library"}, plan.environment,
                         [](KeyVisitor& keys, EnvironmentSetting& setting) {
                           keys.text({"name", "of the variable"}, setting.name);
                           keys.text({"value", "it is set to"}, setting.value);
                           keys.text({"reason", "why"}, setting.reason);
                         });
  visitor.table({"prediction", "of one step"}, [&](KeyVisitor& keys) { visit_keys(keys, plan.prediction); });
  visitor.list_of_tables({"runners_up", "the next best plans"}, plan.runners_up, visit_runner_up);
  visitor.list_of_tables({"advice", "what the plan deserves to be warned of"}, plan.advice,
                         [](KeyVisitor& keys, Advice& advice) {
                           keys.text({"rule", "that speaks"}, advice.rule);
                           keys.text({"message", "for the user"}, advice.message);
                           keys.text({"reason", "behind it"}, advice.reason);
                           keys.text({"source", "of the rule"}, advice.source);
                         });
  visitor.table({"certificate", "what the search proved"},
                [&](KeyVisitor& keys) { visit_keys(keys, plan.certificate); });
  visitor.table({"inputs", "the experiment, every default filled in"},
                [&](KeyVisitor& keys) { visit_inputs(keys, plan.inputs); });
}

}  // namespace specs
