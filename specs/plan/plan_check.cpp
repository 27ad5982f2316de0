#include "specs/plan/plan_check.h"

#include <algorithm>
#include <cstdint>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "specs/language/read_experiment.h"
#include "specs/language/section_keys.h"
#include "specs/plan/json_keys.h"
#include "specs/plan/placement_check.h"
#include "specs/plan/plan_keys.h"
#include "specs/plan/rank_mapping_check.h"
#include "specs/schedule/generate.h"
#include "specs/schedule/text.h"
#include "specs/schedule/verify.h"

namespace specs {
namespace {

/// Numbers of micro-batches that replicas run, each once, in their order.
std::vector<std::int64_t> distinct_shares(const Placement& placement) {
  if (placement.replica_shares.empty()) return {placement.accumulation};
  std::vector<std::int64_t> shares;
  for (const ReplicaShare& share : placement.replica_shares)
    if (std::find(shares.begin(), shares.end(), share.micro_batches) == shares.end())
      shares.push_back(share.micro_batches);
  return shares;
}

Schedule shape_of(const Placement& placement, std::int64_t micro_batches) {
  return {.kind = placement.schedule,
          .layout = layout_of(placement.schedule),
          .pipeline_ranks = static_cast<std::int32_t>(placement.pipeline_ranks()),
          .virtual_stages = static_cast<std::int32_t>(placement.virtual_stages),
          .micro_batches = static_cast<std::int32_t>(micro_batches),
          .micro_batch_group = static_cast<std::int32_t>(placement.micro_batch_group),
          .rank_actions = {}};
}

Schedule generate(const Placement& placement, std::int64_t micro_batches) {
  const Schedule shape = shape_of(placement, micro_batches);
  return generate_schedule(shape.kind, shape.pipeline_ranks, shape.virtual_stages, shape.micro_batches,
                           shape.micro_batch_group);
}

/// "stages/5/mesh/tensor" of the placement at a pointer as a pointer into its file, where runs of stages
/// stand for several.
std::string placement_pointer(const std::string& placement, const std::vector<StageRun>& runs,
                              const std::string& field) {
  const std::string stages = "stages/";
  if (!field.starts_with(stages)) return field.empty() ? placement : placement + "/" + field;
  const std::size_t end = field.find('/', stages.size());
  std::int64_t index = std::stoll(field.substr(stages.size(), end - stages.size()));
  std::size_t run = 0;
  while (run + 1 < runs.size() && index >= runs[run].count) index -= runs[run++].count;
  return fmt::format("{}/stages/{}{}", placement, run, end == std::string::npos ? "" : field.substr(end));
}

/// Of a count of candidates.
constexpr std::size_t most_digits = 1000;

class PlanCheck {
 public:
  explicit PlanCheck(const Plan& plan) : plan_(plan) {}

  std::vector<PlanViolation> run() {
    check_inputs();
    if (!violations_.empty()) return violations_;  // the rest is judged against the inputs
    check_placement("/placement", plan_.placement);
    if (!violations_.empty()) return violations_;  // and against the placement
    check_world();
    check_schedule();
    check_ranks();
    check_prediction();
    check_runners_up();
    check_certificate();
    return violations_;
  }

 private:
  void refuse(std::string pointer, std::string message, std::string remedy = {}) {
    violations_.push_back({std::move(pointer), std::move(message), std::move(remedy)});
  }

  void check_inputs() {
    const std::string hash = inputs_hash(plan_.inputs);
    if (plan_.inputs_hash != hash) {
      std::vector<std::string> changed;
      const auto sections = [](const std::string& text) {
        std::set<std::string> parts;
        for (std::size_t begin = 0; begin < text.size();) {
          const std::size_t end = std::min(text.find(' ', begin), text.size());
          parts.insert(text.substr(begin, end - begin));
          begin = end + 1;
        }
        return parts;
      };
      const std::set<std::string> recorded = sections(plan_.inputs_hash);
      for (const std::string& section : sections(hash))
        if (!recorded.contains(section)) changed.push_back(section.substr(0, section.find(':')));
      refuse("/inputs_hash",
             fmt::format("the inputs were changed after the plan was made: {}", fmt::join(changed, ", ")),
             "plan again from the changed experiment");
    }
    const Diagnostics problems = check_experiment(plan_.inputs);
    for (const Diagnostic& problem : problems.entries())
      if (problem.severity == Severity::error)
        refuse("/inputs", "inputs: " + problem.message, problem.remedy);
  }

  void check_placement(const std::string& pointer, const Placement& placement) {
    const std::vector<StageRun> runs = fold(placement.stages);
    for (const PlacementViolation& violation :
         placement_violations(placement, plan_.inputs.model, plan_.inputs.cluster, plan_.inputs.training))
      refuse(placement_pointer(pointer, runs, violation.field),
             fmt::format("{}/{}: {}", pointer.substr(1), violation.field, violation.message),
             violation.remedy);
  }

  void check_runners_up() {
    for (std::size_t index = 0; index < plan_.runners_up.size(); ++index)
      check_placement(fmt::format("/runners_up/{}/placement", index), plan_.runners_up[index].placement);
  }

  void check_world() {
    const std::int64_t world = plan_.placement.world_size();
    if (plan_.world_size != world)
      refuse("/world_size",
             fmt::format("world_size {}, but the placement uses {} ranks", plan_.world_size, world));
    const std::int64_t idle = plan_.inputs.cluster.devices() - world;
    if (plan_.idle_devices != idle)
      refuse("/idle_devices", fmt::format("idle_devices {}, but the cluster's {} devices − {} ranks = {}",
                                          plan_.idle_devices, plan_.inputs.cluster.devices(), world, idle));
  }

  void check_schedule() {
    const PlanSchedule& schedule = plan_.schedule;
    const std::string_view kind = name_of(plan_.placement.schedule);
    if (schedule.generator != kind)
      return refuse("/schedule/generator", fmt::format("generator {}, but the placement's schedule is {}",
                                                       schedule.generator, kind));
    if (schedule.generator_version != generator_version(plan_.placement.schedule))
      return refuse(
          "/schedule/generator_version",
          fmt::format("version {} of generator {}, this program has version {}", schedule.generator_version,
                      kind, generator_version(plan_.placement.schedule)),
          "plan again with this version");
    if (schedule.layout != layout_of(plan_.placement.schedule))
      return refuse("/schedule/layout",
                    fmt::format("layout {}, but schedule {} has {}", name_of(schedule.layout), kind,
                                name_of(layout_of(plan_.placement.schedule))));
    const std::vector<std::int64_t> shares = distinct_shares(plan_.placement);
    if (schedule.replicas.size() != shares.size())
      return refuse("/schedule/replicas",
                    fmt::format("{} schedules for {} distinct shares of the micro-batches",
                                schedule.replicas.size(), shares.size()));
    for (std::size_t index = 0; index < shares.size(); ++index) check_replica(index, shares[index]);
  }

  void check_replica(std::size_t index, std::int64_t share) {
    const ReplicaSchedule& replica = plan_.schedule.replicas[index];
    const std::string pointer = fmt::format("/schedule/replicas/{}", index);
    if (replica.micro_batches != share)
      return refuse(pointer + "/micro_batches", fmt::format("{} micro-batches, but the placement gives {}",
                                                            replica.micro_batches, share));
    std::vector<SourcePosition> starts;
    for (std::size_t rank = 0; rank < replica.rank_actions.size(); ++rank)
      starts.push_back({.file = {}, .line = static_cast<int>(rank), .column = 1});
    const Result<Schedule> parsed =
        from_text(shape_of(plan_.placement, share), replica.rank_actions, {}, starts);
    for (const Diagnostic& problem : parsed.diagnostics.entries()) {
      const bool in_line = problem.position.column > 0;
      violations_.push_back(
          {.pointer = in_line ? fmt::format("{}/rank_actions/{}", pointer, problem.position.line)
                              : pointer + "/rank_actions",
           .message = problem.message,
           .remedy = problem.remedy,
           .offset = problem.position.column - 1});
    }
    if (!parsed) return;
    const Diagnostics broken = verify(*parsed);
    if (!broken.empty()) return refuse(pointer + "/rank_actions", broken.entries().front().message);
    const Schedule made = generate(plan_.placement, share);
    for (std::size_t rank = 0; rank < made.rank_actions.size(); ++rank)
      if (parsed->rank_actions[rank] != made.rank_actions[rank])
        return refuse(fmt::format("{}/rank_actions/{}", pointer, rank),
                      fmt::format("not what generator {} version {} makes", plan_.schedule.generator,
                                  plan_.schedule.generator_version),
                      to_text(made)[rank]);
  }

  void check_ranks() {
    for (RankMappingViolation& violation :
         rank_mapping_violations(plan_.ranks, plan_.placement, plan_.inputs.cluster))
      refuse("/ranks" + violation.field, "ranks: " + violation.message);
  }

  void check_prediction() {
    const auto ranks = plan_.placement.pipeline_ranks();
    const auto stages = static_cast<std::int64_t>(plan_.placement.stages.size());
    const CostBreakdown& cost = plan_.prediction;
    for (std::size_t index = 0; index < cost.time.size(); ++index) {
      const std::string pointer = fmt::format("/prediction/time/{}", index);
      if (cost.time[index].pipeline_rank >= ranks)
        refuse(pointer + "/pipeline_rank",
               fmt::format("pipeline rank {}, the last is {}", cost.time[index].pipeline_rank, ranks - 1));
      if (cost.time[index].stage >= stages)
        refuse(pointer + "/stage",
               fmt::format("stage {}, the last is {}", cost.time[index].stage, stages - 1));
    }
    for (std::size_t index = 0; index < cost.memory.size(); ++index)
      if (cost.memory[index].pipeline_rank >= ranks)
        refuse(fmt::format("/prediction/memory/{}/pipeline_rank", index),
               fmt::format("pipeline rank {}, the last is {}", cost.memory[index].pipeline_rank, ranks - 1));
  }

  void check_certificate() {
    const auto check_count = [&](const std::string& pointer, const std::string& text) {
      const bool digits = std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
      if (!digits || text.size() > most_digits)
        refuse(pointer,
               fmt::format("\"{:.40}{}\" is not a decimal integer", text, text.size() > 40 ? "…" : ""));
    };
    const Certificate& certificate = plan_.certificate;
    check_count("/certificate/space_candidates", certificate.space_candidates);
    check_count("/certificate/priced_candidates", certificate.priced_candidates);
    check_count("/certificate/infeasible_candidates", certificate.infeasible_candidates);
    check_count("/certificate/bounded_candidates", certificate.bounded_candidates);
    for (std::size_t index = 0; index < certificate.regions.size(); ++index)
      check_count(fmt::format("/certificate/regions/{}/candidates", index),
                  certificate.regions[index].candidates);
  }

  const Plan& plan_;
  std::vector<PlanViolation> violations_;
};

/// 64-bit FNV-1a, as 16 hexadecimal digits.
std::string hash_of(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char byte : text) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3U;
  return fmt::format("{:016x}", hash);
}

}  // namespace

std::vector<PlanViolation> plan_violations(const Plan& plan) { return PlanCheck(plan).run(); }

std::string inputs_hash(const Experiment& inputs) {
  Experiment copy = inputs;
  JsonKeyWriter writer;
  visit_keys(writer, copy);
  std::string text;
  for (const auto& [section, value] : writer.object().items()) {
    if (!value.is_object()) continue;  // the name
    text += fmt::format("{}{}:{}", text.empty() ? "" : " ", section, hash_of(value.dump()));
  }
  return text;
}

PlanSchedule plan_schedule(const Placement& placement) {
  PlanSchedule schedule{.generator = std::string(name_of(placement.schedule)),
                        .generator_version = generator_version(placement.schedule),
                        .layout = layout_of(placement.schedule),
                        .replicas = {}};
  for (std::int64_t share : distinct_shares(placement))
    schedule.replicas.push_back({share, to_text(generate(placement, share))});
  return schedule;
}

}  // namespace specs
