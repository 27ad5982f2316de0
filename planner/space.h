// The one definition of the search space: every regular placement of an experiment that is legal.
//
// A candidate is a mesh (tensor, context, pipeline, data, expert, expert_tensor), a micro-batch, a schedule
// with its virtual stages, and a treatment (sequence parallelism, recomputation, ZeRO, offload). All devices
// are used; [search] idle_nodes allows that many nodes to stand idle, and where no mesh uses exactly the
// allowed numbers of devices, the largest number below for which a legal mesh exists is used. Offload moves
// a part whole (eight eighths) unless [search] offload_eighths says otherwise. Rank order is the default one.
// Memory is not a rule of the space: what does not fit is a candidate that the search finds infeasible.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/legality.h"
#include "specs/diagnostics/diagnostic.h"
#include "specs/language/experiment.h"
#include "specs/language/stack.h"
#include "specs/plan/placement.h"

namespace planner {

struct ScheduleChoice {
  specs::ScheduleKind kind = specs::ScheduleKind::one_forward_one_backward;
  std::int64_t virtual_stages = 1;
  bool operator==(const ScheduleChoice&) const = default;
};

struct Treatment {
  bool sequence_parallel = false;
  specs::Recomputation recomputation = specs::Recomputation::none;
  specs::ZeroTreatment zero;
  specs::StageOffload offload;
  bool operator==(const Treatment&) const = default;
};

/// A micro-batch of a mesh and the schedules that exist for its number of micro-batches.
struct BatchChoice {
  std::int64_t micro_batch = 1;
  std::int64_t accumulation = 1;
  std::vector<ScheduleChoice> schedules;
  bool operator==(const BatchChoice&) const = default;
};

/// All candidates of one mesh: the product of its (micro-batch, schedule) pairs and its treatments.
struct MeshSpace {
  MeshDegrees mesh;
  std::vector<BatchChoice> batches;  ///< none without a schedule
  std::vector<Treatment> treatments;
  specs::BucketSizes buckets;  ///< the same for all of them

  std::uint64_t candidates() const;
  /// Calls `visit(const specs::RegularPlacement&)` for each candidate, in a fixed order.
  template <class Visit>
  void for_each(Visit&& visit) const;
};

/// One dimension as `--show-space` prints it.
struct Dimension {
  std::string name;
  std::vector<std::string> values;    ///< that occur in at least one candidate
  std::vector<std::string> excluded;  ///< "value: reason", for values that a user might miss
};

class Space {
 public:
  /// Keeps references to both arguments. Without a legal mesh the space is empty.
  Space(const specs::Experiment& experiment, const specs::StackSpec& stack);

  const std::vector<MeshSpace>& meshes() const { return meshes_; }
  const Legality& legality() const { return legality_; }
  std::int64_t largest_world_size() const;
  std::uint64_t candidates() const;
  bool has_experts() const { return experiment_.model.mixture.has_value(); }
  bool contains_world_size(std::int64_t world_size) const;

  std::vector<Dimension> dimensions() const;

  /// The values that [search] names for tensor, context, pipeline and data and the rules refuse.
  std::vector<Dimension> refused_restrictions() const;

 private:
  std::vector<MeshSpace> meshes_for(std::int64_t world_size) const;
  std::vector<MeshDegrees> with_expert_degrees(const MeshDegrees& dense) const;
  MeshSpace mesh_space(const MeshDegrees& mesh) const;
  std::vector<ScheduleChoice> schedules(const MeshDegrees& mesh, std::int64_t accumulation) const;
  std::vector<Treatment> treatments(const MeshDegrees& mesh) const;

  const specs::Experiment& experiment_;
  const specs::StackSpec& stack_;
  Legality legality_;
  std::vector<std::int64_t> tensor_degrees_;
  std::vector<std::int64_t> context_degrees_;
  std::vector<std::int64_t> pipeline_degrees_;
  std::vector<MeshSpace> meshes_;
};

/// Divisors of a positive number in ascending order.
std::vector<std::int64_t> divisors(std::int64_t number);

template <class Visit>
void MeshSpace::for_each(Visit&& visit) const {
  specs::RegularPlacement placement;
  placement.tensor = mesh.tensor;
  placement.context = mesh.context;
  placement.pipeline = mesh.pipeline;
  placement.data = mesh.data;
  placement.expert = mesh.expert;
  placement.expert_tensor = mesh.expert_tensor;
  placement.buckets = buckets;
  for (const BatchChoice& batch : batches) {
    placement.micro_batch = batch.micro_batch;
    placement.accumulation = batch.accumulation;
    for (const ScheduleChoice& choice : batch.schedules) {
      placement.schedule = choice.kind;
      placement.virtual_stages = choice.virtual_stages;
      for (const Treatment& treatment : treatments) {
        placement.sequence_parallel = treatment.sequence_parallel;
        placement.recomputation = treatment.recomputation;
        placement.zero = treatment.zero;
        placement.offload = treatment.offload;
        visit(static_cast<const specs::RegularPlacement&>(placement));
      }
    }
  }
}

}  // namespace planner
