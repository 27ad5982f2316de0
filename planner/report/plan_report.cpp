#include "planner/report/plan_report.h"

#include <algorithm>

#include <fmt/format.h>

#include "cost_models/parameters.h"
#include "planner/plan/cost_difference.h"
#include "planner/report/cost_tables.h"
#include "planner/report/layout_words.h"

namespace planner {
namespace {

using specs::Plan;

Fact text_fact(std::string key, std::string title, std::string value) {
  return {std::move(key), std::move(title), Quantity::text, std::move(value), {}};
}

std::string cluster_words(const specs::ClusterSpec& cluster) {
  std::string words;
  for (const specs::ClusterGroup& group : cluster.groups) {
    if (!words.empty()) words += " + ";
    words += fmt::format("{} × {} ({} {})", format_count(group.nodes), group.node.name,
                         format_count(group.devices()), group.node.device.name);
  }
  if (cluster.network.kind != specs::NetworkKind::none && !cluster.network.name.empty())
    words += ", " + cluster.network.name;
  return words;
}

std::string recipe_words(const specs::TrainingSpec& training) {
  return fmt::format("{} sequences of {} tokens a step, {}, {}, stack {}",
                     format_count(training.global_batch), format_count(training.sequence_length),
                     name_of(training.precision), name_of(training.optimizer.type), training.stack);
}

/// Days, device-hours, money and energy of the whole run, where its length is known.
void add_run_facts(const specs::CostBreakdown& cost, std::vector<Fact>& facts) {
  if (cost.run_seconds <= 0) return;
  facts.push_back({"run_seconds", "whole run", Quantity::seconds, cost.run_seconds,
                   cost.goodput_fraction < 1 ? "of wall time, failures and checkpoints included"
                                             : "without failures and checkpoints"});
  facts.push_back({"run_device_hours", "device-hours", Quantity::count, cost.run_device_hours, {}});
  if (cost.run_cost_dollars > 0)
    facts.push_back({"run_cost_dollars", "cost of the run", Quantity::dollars, cost.run_cost_dollars, {}});
  if (cost.run_energy_joules > 0)
    facts.push_back({"run_energy_joules", "energy of the run", Quantity::joules, cost.run_energy_joules, {}});
}

Notes reasons(const Plan& plan, std::int64_t usable_device_bytes) {
  Notes notes{"why", "Why this placement", {}};
  if (!plan.runners_up.empty()) {
    const specs::RunnerUp& next = plan.runners_up.front();
    notes.lines.push_back(fmt::format("Next best: {} ({}) is {}.", mesh_words(next.placement),
                                      schedule_words(next.placement), next.trade));
  }
  for (const specs::Advice& advice : plan.advice)
    if (advice.rule == "binding-memory")
      notes.lines.push_back(fmt::format("Excluded by memory: {}; {}.", advice.message, advice.reason));
  const std::int64_t fullest = fullest_pipeline_rank(plan.prediction);
  notes.lines.push_back(fmt::format("Memory: pipeline rank {} is the fullest with {} of {} usable.", fullest,
                                    format_bytes(static_cast<double>(plan.prediction.peak_device_bytes)),
                                    format_bytes(static_cast<double>(usable_device_bytes))));
  return notes;
}

Table runners_up_table(const Plan& plan) {
  Table table{"runners_up", "Runners-up: the best placement of each other mesh", {}, {}, false};
  table.columns = {{"tensor", "tensor", Quantity::count},
                   {"context", "context", Quantity::count},
                   {"pipeline", "pipeline", Quantity::count},
                   {"data", "data", Quantity::count},
                   {"schedule", "schedule"},
                   {"micro_batches", "micro-batch"},
                   {"recomputation", "recompute"},
                   {"zero_stage", "ZeRO", Quantity::count},
                   {"step_seconds", "step", Quantity::seconds},
                   {"slower", "slower", Quantity::signed_fraction},
                   {"peak_device_bytes", "memory", Quantity::bytes}};
  for (const specs::RunnerUp& runner_up : plan.runners_up) {
    const specs::Placement& placement = runner_up.placement;
    const specs::PipelineStage& stage = placement.stages.front();
    table.rows.push_back({stage.mesh.tensor, stage.mesh.context, placement.pipeline_ranks(), stage.mesh.data,
                          short_schedule_words(placement), micro_batch_words(placement),
                          recomputation_words(placement), stage.zero.stage, runner_up.step_seconds,
                          runner_up.step_seconds / plan.prediction.step_seconds - 1,
                          runner_up.peak_device_bytes});
  }
  return table;
}

Notes schedule_notes(const Plan& plan) {
  Notes notes{"schedule", "Schedule, one line a pipeline rank", {}};
  for (const specs::ReplicaSchedule& replica : plan.schedule.replicas) {
    if (plan.schedule.replicas.size() > 1)
      notes.lines.push_back(fmt::format("replicas of {} micro-batches", replica.micro_batches));
    for (std::size_t rank = 0; rank < replica.rank_actions.size(); ++rank)
      notes.lines.push_back(fmt::format("{}: {}", rank, replica.rank_actions[rank]));
  }
  return notes;
}

Table rank_table(const Plan& plan) {
  Table table{"ranks", "Ranks on devices", {}, {}, false};
  table.columns = {{"first_rank", "first rank", Quantity::count},
                   {"ranks", "ranks", Quantity::count},
                   {"first_node", "first node", Quantity::count},
                   {"ranks_per_node", "a node", Quantity::count},
                   {"device_group", "group", Quantity::count}};
  for (const specs::HostRange& range : plan.ranks.ranges)
    table.rows.push_back(
        {range.first_rank, range.ranks, range.first_node, range.ranks_per_node, range.device_group});
  return table;
}

}  // namespace

Facts certificate_facts(const specs::Certificate& certificate) {
  Facts facts{"certificate", "Certificate", {}};
  if (certificate.method.empty()) return facts;
  facts.facts.push_back(
      text_fact("statement", "statement",
                certificate.complete
                    ? fmt::format("the optimum of the whole space, gap {}", format_gap(certificate.gap))
                    : fmt::format("the best so far; the search was stopped, and that nothing is more than {} "
                                  "better is not proven",
                                  format_gap(certificate.gap))));
  facts.facts.push_back(text_fact(
      "candidates", "candidates",
      fmt::format("{} in the space: {} settled by a price, {} cannot fit, {} excluded by a bound",
                  with_commas(certificate.space_candidates), with_commas(certificate.priced_candidates),
                  with_commas(certificate.infeasible_candidates),
                  with_commas(certificate.bounded_candidates))));
  facts.facts.push_back(
      text_fact("method", "method",
                fmt::format("{} search, {} regions", certificate.method, certificate.regions.size())));
  return facts;
}

Table environment_table(const Plan& plan) {
  Table table{"environment", "Communication environment", {}, {}, false};
  table.columns = {{"name", "variable"}, {"value", "value"}, {"reason", "reason"}};
  for (const specs::EnvironmentSetting& setting : plan.environment)
    table.rows.push_back({setting.name, setting.value, setting.reason});
  return table;
}

Notes advice_notes(const Plan& plan) {
  Notes notes{"advice", "Advice", {}};
  for (const specs::Advice& advice : plan.advice)
    if (advice.rule != "binding-memory")
      notes.lines.push_back(fmt::format("{}: {} [{}]", advice.message, advice.reason, advice.rule));
  return notes;
}

void add_cost_facts(const specs::CostBreakdown& cost, std::int64_t usable_device_bytes,
                    std::vector<Fact>& facts) {
  const bool interval = cost.step_seconds_low < cost.step_seconds_high;
  facts.push_back({"step_seconds", "step time", Quantity::seconds, cost.step_seconds,
                   interval ? fmt::format("(80 % between {} and {})", format_seconds(cost.step_seconds_low),
                                          format_seconds(cost.step_seconds_high))
                            : std::string()});
  facts.push_back(
      {"tokens_per_second", "throughput", Quantity::tokens_per_second, cost.tokens_per_second, {}});
  facts.push_back({"model_flops_utilization", "MFU", Quantity::fraction, cost.model_flops_utilization, {}});
  facts.push_back({"peak_device_bytes", "device memory", Quantity::bytes, cost.peak_device_bytes,
                   fmt::format("of {} usable ({})", format_bytes(static_cast<double>(usable_device_bytes)),
                               format_fraction(static_cast<double>(cost.peak_device_bytes) /
                                               static_cast<double>(usable_device_bytes)))});
  if (cost.goodput_fraction < 1)
    facts.push_back(
        {"goodput_fraction", "goodput", Quantity::fraction, cost.goodput_fraction, "of wall time"});
  if (cost.peak_host_bytes_per_node > 0)
    facts.push_back({"peak_host_bytes_per_node", "host memory", Quantity::bytes,
                     cost.peak_host_bytes_per_node, "a node"});
  if (cost.cost_per_step_dollars > 0)
    facts.push_back(
        {"cost_per_step_dollars", "cost a step", Quantity::dollars, cost.cost_per_step_dollars, {}});
  if (cost.energy_per_step_joules > 0)
    facts.push_back(
        {"energy_per_step_joules", "energy a step", Quantity::joules, cost.energy_per_step_joules, {}});
  add_run_facts(cost, facts);
}

/// Why devices stand idle: because [search] lets them and the objective is best so, or because no mesh uses
/// more.
std::string idle_words(const Plan& plan) {
  const specs::Experiment& inputs = plan.inputs;
  const std::int64_t allowed = inputs.search.idle_nodes * inputs.cluster.groups.front().node.devices;
  const std::string of_all = fmt::format("of {} devices: ", format_count(inputs.cluster.devices()));
  if (plan.idle_devices <= allowed)
    return of_all + fmt::format("[search] idle_nodes allows {}, and {} is best so", inputs.search.idle_nodes,
                                name_of(inputs.search.objective));
  return of_all + fmt::format("no legal mesh uses more than {}", format_count(plan.world_size));
}

Facts plan_summary(const Plan& plan, std::int64_t usable_device_bytes) {
  const specs::Experiment& inputs = plan.inputs;
  Facts facts{"plan", fmt::format("Plan of {}", inputs.name), {}};
  const auto parameters = cost_models::total_parameters(inputs.model);
  facts.facts.push_back({"model", "model", Quantity::text, inputs.model.name,
                         fmt::format("{} parameters", format_parameters(static_cast<double>(parameters)))});
  facts.facts.push_back(text_fact("cluster", "cluster", cluster_words(inputs.cluster)));
  facts.facts.push_back(text_fact("recipe", "recipe", recipe_words(inputs.training)));
  facts.facts.push_back(text_fact("mesh", "mesh", mesh_words(plan.placement)));
  facts.facts.push_back(text_fact("schedule", "schedule", schedule_words(plan.placement)));
  facts.facts.push_back(text_fact("memory_savings", "memory savers", memory_saving_words(plan.placement)));
  if (plan.idle_devices > 0)
    facts.facts.push_back({"idle_devices", "idle", Quantity::count, plan.idle_devices, idle_words(plan)});
  for (const specs::Advice& advice : plan.advice)
    if (advice.rule == "idle-nodes") facts.facts.push_back(text_fact("idle_nodes", "idle", advice.message));
  add_cost_facts(plan.prediction, usable_device_bytes, facts.facts);
  return facts;
}

Report plan_report(const Plan& plan, const PlanReportOptions& options) {
  Report report;
  const auto add = [&](Section section) { report.sections.push_back(std::move(section)); };
  add(plan_summary(plan, options.usable_device_bytes));
  add(reasons(plan, options.usable_device_bytes));
  add(time_table(plan.prediction));
  add(memory_table(plan.prediction, options.usable_device_bytes));
  add(off_device_table(plan.prediction));
  if (options.every_pipeline_rank) {
    add(pipeline_rank_table(plan.prediction, plan.placement, specs::block_count(plan.inputs.model),
                            options.usable_device_bytes));
    add(schedule_notes(plan));
    add(rank_table(plan));
  }
  add(runners_up_table(plan));
  if (!plan.certificate.method.empty()) add(certificate_facts(plan.certificate));
  add(environment_table(plan));
  add(advice_notes(plan));
  return report;
}

}  // namespace planner
