#include "planner/written_out_space.h"

#include <algorithm>

#include <fmt/format.h>

#include "specs/plan/placement_check.h"
#include "specs/schedule/generate.h"

namespace planner {
namespace {

using specs::OffloadDevice;
using specs::Recomputation;
using specs::RegularPlacement;
using specs::ScheduleKind;
using specs::ShardScope;

constexpr std::int64_t bucket_bytes = 26214400;

template <class Value>
bool among(const std::vector<Value>& list, const Value& value) {
  return std::count(list.begin(), list.end(), value) > 0;
}
template <class Value>
bool wanted(const std::vector<Value>& restriction, const Value& value) {
  return restriction.empty() || among(restriction, value);
}

class Writer {
 public:
  Writer(const specs::Experiment& experiment, const specs::StackSpec& stack)
      : experiment_(experiment),
        search_(experiment.search),
        stack_(stack),
        layers_(specs::block_count(experiment.model)) {}

  std::vector<WrittenOutMesh> of_world(std::int64_t world) const {
    std::vector<WrittenOutMesh> meshes;
    for (std::int64_t tensor = 1; tensor <= std::min(world, experiment_.model.attention.heads); ++tensor)
      for (std::int64_t pipeline = 1; tensor * pipeline <= world && pipeline <= layers_; ++pipeline)
        for (std::int64_t context = 1; tensor * pipeline * context <= world; ++context) {
          const std::int64_t data = world / (tensor * pipeline * context);
          if (tensor * pipeline * context * data == world)
            add_meshes(tensor, context, pipeline, data, meshes);
        }
    return meshes;
  }

 private:
  void add_meshes(std::int64_t tensor, std::int64_t context, std::int64_t pipeline, std::int64_t data,
                  std::vector<WrittenOutMesh>& meshes) const {
    if (!wanted(search_.tensor, tensor) || !wanted(search_.context, context) ||
        !wanted(search_.pipeline, pipeline) || !wanted(search_.data, data) ||
        experiment_.training.global_batch % data != 0)
      return;
    if ((tensor > 1 && !stack_.tensor_parallel) || (context > 1 && !stack_.context_parallel) ||
        (pipeline > 1 && stack_.schedules.empty()))
      return;
    const std::int64_t experts = experiment_.model.mixture ? experiment_.model.mixture->experts : 1;
    for (std::int64_t expert = 1; expert <= experts; ++expert)
      for (std::int64_t expert_tensor = 1; expert_tensor <= (experts > 1 ? tensor : 1); ++expert_tensor) {
        RegularPlacement mesh;
        mesh.tensor = tensor;
        mesh.context = context;
        mesh.pipeline = pipeline;
        mesh.data = data;
        mesh.expert = expert;
        mesh.expert_tensor = expert_tensor;
        if (experts > 1 && !experts_allowed(mesh)) continue;
        WrittenOutMesh written{name_of_mesh(mesh), members_of(mesh)};
        if (!written.members.empty()) meshes.push_back(std::move(written));
      }
  }

  bool experts_allowed(const RegularPlacement& mesh) const {
    if (mesh.tensor % mesh.expert_tensor != 0 || !wanted(search_.expert, mesh.expert) ||
        !wanted(search_.expert_tensor, mesh.expert_tensor))
      return false;
    if (mesh.expert > 1 && !stack_.expert_parallel) return false;
    return mesh.expert_tensor == 1 || mesh.expert_tensor == mesh.tensor || stack_.expert_tensor_parallel;
  }

  std::string name_of_mesh(const RegularPlacement& mesh) const {
    std::string name = fmt::format("tensor={} context={} pipeline={} data={}", mesh.tensor, mesh.context,
                                   mesh.pipeline, mesh.data);
    if (experiment_.model.mixture)
      name += fmt::format(" expert={} expert_tensor={}", mesh.expert, mesh.expert_tensor);
    return name;
  }

  std::vector<RegularPlacement> members_of(const RegularPlacement& mesh) const {
    std::vector<RegularPlacement> members;
    RegularPlacement member = mesh;
    if (mesh.data * mesh.context > 1) {
      member.buckets.gradient_bucket_bytes = bucket_bytes;
      member.buckets.gather_bucket_bytes = bucket_bytes;
    }
    const std::int64_t share = experiment_.training.global_batch / mesh.data;
    for (std::int64_t micro_batch = 1; micro_batch <= share; ++micro_batch) {
      if (share % micro_batch != 0 || !wanted(search_.micro_batch, micro_batch)) continue;
      member.micro_batch = micro_batch;
      member.accumulation = share / micro_batch;
      for (const auto& [kind, name] : specs::EnumNames<ScheduleKind>::names)
        for (std::int64_t virtual_stages = 1; virtual_stages * mesh.pipeline <= layers_; ++virtual_stages) {
          member.schedule = kind;
          member.virtual_stages = virtual_stages;
          if (schedule_allowed(member)) add_treatments(member, members);
        }
    }
    return members;
  }

  bool schedule_allowed(const RegularPlacement& member) const {
    if (member.pipeline == 1)
      return member.schedule == ScheduleKind::one_forward_one_backward && member.virtual_stages == 1;
    if ((member.schedule == ScheduleKind::interleaved) != (member.virtual_stages > 1) &&
        member.schedule != ScheduleKind::zero_bubble_v && member.schedule != ScheduleKind::dual_pipe_v)
      return false;
    const bool uneven = layers_ % (member.pipeline * member.virtual_stages) != 0;
    return among(stack_.schedules, member.schedule) && wanted(search_.schedule, member.schedule) &&
           wanted(search_.virtual_stages, member.virtual_stages) &&
           (!uneven || (member.virtual_stages == 1 && search_.uneven_stages && stack_.uneven_stages)) &&
           specs::schedule_refusal(member.schedule, member.pipeline, member.virtual_stages,
                                   member.accumulation)
               .empty();
  }

  void add_treatments(RegularPlacement member, std::vector<RegularPlacement>& members) const {
    bool shape_judged = false;
    for (const bool sequence_parallel : {false, true})
      for (const Recomputation recomputation : stack_.recomputations)
        for (std::int64_t stage = 0; stage <= 3; ++stage)
          for (const ShardScope scope : {ShardScope::world, ShardScope::node}) {
            member.sequence_parallel = sequence_parallel;
            member.recomputation = recomputation;
            member.zero = {stage, scope};
            if (!treatment_allowed(member)) continue;
            // Treatments do not change the shape that the check judges, sequence parallelism apart.
            if (!shape_judged && !shape_allowed(member)) return;
            shape_judged = true;
            add_offloads(member, members);
          }
  }

  bool treatment_allowed(const RegularPlacement& member) const {
    const std::int64_t replicas = member.data * member.context;
    if (member.tensor == 1 ? member.sequence_parallel
                           : !wanted(search_.sequence_parallel, member.sequence_parallel))
      return false;
    if (member.sequence_parallel &&
        (!stack_.sequence_parallel ||
         experiment_.training.sequence_length / member.context % member.tensor != 0))
      return false;
    if (!wanted(search_.recomputation, member.recomputation)) return false;
    if (replicas == 1) return member.zero == specs::ZeroTreatment{};
    if (!among(stack_.zero_stages, member.zero.stage) || !wanted(search_.zero_stage, member.zero.stage))
      return false;
    if (member.pipeline > 1 && member.zero.stage > stack_.zero_stage_with_pipeline) return false;
    const std::int64_t per_node = experiment_.cluster.groups.front().node.devices / member.tensor;
    const bool scope_matters = member.zero.stage > 0 && per_node > 1 && per_node < replicas;
    if (!scope_matters) return member.zero.scope == ShardScope::world;
    return among(stack_.shard_scopes, member.zero.scope) && wanted(search_.shard_scope, member.zero.scope);
  }

  bool shape_allowed(const RegularPlacement& member) const {
    return specs::placement_violations(specs::regular_placement(member, layers_), experiment_.model,
                                       experiment_.cluster, experiment_.training)
        .empty();
  }

  void add_offloads(RegularPlacement member, std::vector<RegularPlacement>& members) const {
    const auto choices = [&](const std::vector<OffloadDevice>& offered,
                             const std::vector<OffloadDevice>& restriction) {
      std::vector<specs::OffloadTreatment> treatments;
      for (const OffloadDevice device : {OffloadDevice::none, OffloadDevice::cpu, OffloadDevice::nvme}) {
        if (!wanted(restriction, device)) continue;
        if (device == OffloadDevice::none) {
          treatments.push_back({});
          continue;
        }
        if (!among(offered, device)) continue;
        for (std::int64_t eighths = 1; eighths <= 8; ++eighths)
          if (search_.offload_eighths.empty() ? eighths == 8 : among(search_.offload_eighths, eighths))
            treatments.push_back({device, eighths});
      }
      return treatments;
    };
    for (const auto& optimizer : choices(stack_.optimizer_offload, search_.offload_optimizer))
      for (const auto& parameters : choices(stack_.parameter_offload, search_.offload_parameters))
        for (const auto& activations : choices(stack_.activation_offload, search_.offload_activations)) {
          if (parameters.device != OffloadDevice::none && member.zero.stage < 3) continue;
          member.offload = {optimizer, parameters, activations, false};
          members.push_back(member);
        }
  }

  const specs::Experiment& experiment_;
  const specs::SearchSpec& search_;
  const specs::StackSpec& stack_;
  std::int64_t layers_;
};

}  // namespace

WrittenOutSpace::WrittenOutSpace(const specs::Experiment& experiment, const specs::StackSpec& stack) {
  const Writer writer(experiment, stack);
  const std::int64_t devices = experiment.cluster.devices();
  const std::int64_t per_node = experiment.cluster.groups.front().node.devices;
  for (std::int64_t idle = 0; idle <= experiment.search.idle_nodes && idle * per_node < devices; ++idle) {
    std::vector<WrittenOutMesh> found = writer.of_world(devices - idle * per_node);
    meshes_.insert(meshes_.end(), std::make_move_iterator(found.begin()),
                   std::make_move_iterator(found.end()));
  }
  for (std::int64_t world = devices - 1; meshes_.empty() && world > 0; --world)
    meshes_ = writer.of_world(world);
}

}  // namespace planner
