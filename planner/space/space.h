// The one definition of the search space: every outer point of an experiment that is legal.
//
// An outer point is a mesh (tensor, context, pipeline, data, expert, expert_tensor) with the order of its
// axes over the ranks, a micro-batch, a schedule with its virtual stages, and a treatment (sequence
// parallelism, treatments of single modules, recomputation, ZeRO, offload, local steps). All devices are
// used; [search] idle_nodes allows that many nodes to stand idle, and where no mesh uses exactly the allowed
// numbers of devices, the largest number below for which a legal mesh exists is used. Axes of size 1 have no
// place in an order: of the orders that put the others alike, the first is the one. Memory is not a rule of
// the space: what does not fit is a candidate that the search finds infeasible.
//
// The space is kept as a product, so that its size follows the number of divisors, not of candidates.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "planner/space/legality.h"
#include "specs/diagnostics/diagnostic.h"
#include "specs/language/experiment.h"
#include "specs/language/stack.h"
#include "specs/plan/placement.h"

namespace planner {

struct ScheduleChoice {
  specs::ScheduleKind kind = specs::ScheduleKind::one_forward_one_backward;
  std::int64_t virtual_stages = 1;
  std::int64_t micro_batch_group = 0;
  bool operator==(const ScheduleChoice&) const = default;
};

/// A micro-batch of a mesh and the schedules that exist for its number of micro-batches.
struct BatchChoice {
  std::int64_t micro_batch = 1;
  std::int64_t accumulation = 1;
  std::size_t schedules = 0;  ///< index for Space::schedules
};

/// Shares that may leave the device, nothing first, then by device and share.
struct OffloadChoices {
  std::vector<specs::OffloadTreatment> optimizer;
  std::vector<specs::OffloadTreatment> delayed_optimizer;  ///< with updates that may end during the next step
  std::vector<specs::OffloadTreatment> parameters;         ///< under ZeRO-3
  std::vector<specs::OffloadTreatment> activations;
};

/// All outer points of one mesh in one order: the product of its (micro-batch, schedule) pairs and its
/// treatments.
struct MeshSpace {
  MeshDegrees mesh;
  specs::AxisOrder order = specs::default_axis_order;
  std::vector<bool> sequence_parallel;
  std::size_t batches = 0;  ///< index for Space::batches
  std::size_t zeros = 0;    ///< index for Space::zeros
  std::size_t modules = 0;  ///< index for Space::modules
  specs::BucketSizes buckets;

  /// The point with the mesh's degrees, order and buckets, everything else neutral.
  specs::RegularPlacement corner() const;
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

  /// By tensor, context, pipeline, data, expert, expert_tensor degree within a world size, then order.
  const std::vector<MeshSpace>& meshes() const { return meshes_; }
  const std::vector<BatchChoice>& batches(const MeshSpace& mesh) const { return batch_lists_[mesh.batches]; }
  const std::vector<ScheduleChoice>& schedules(const BatchChoice& batch) const {
    return schedule_lists_[batch.schedules];
  }
  const std::vector<specs::ZeroTreatment>& zeros(const MeshSpace& mesh) const {
    return zero_lists_[mesh.zeros];
  }
  const std::vector<specs::ModuleTreatments>& modules(const MeshSpace& mesh) const {
    return module_lists_[mesh.modules];
  }
  /// Pairs of a sequence parallelism and module treatments.
  std::size_t kinds(const MeshSpace& mesh) const {
    return mesh.sequence_parallel.size() * modules(mesh).size();
  }
  const std::vector<specs::Recomputation>& recomputations() const { return recomputations_; }
  /// Replicas that part for some steps shard nothing between them.
  const std::vector<std::int64_t>& local_steps(const MeshSpace& mesh, const specs::ZeroTreatment& zero) const;
  const OffloadChoices& offload() const { return offload_; }
  const std::vector<specs::OffloadTreatment>& optimizer_offload(bool delayed) const {
    return delayed ? offload_.delayed_optimizer : offload_.optimizer;
  }
  /// What a mesh leaves of the choices for the activations.
  const std::vector<specs::OffloadTreatment>& activation_offload(const MeshDegrees& mesh) const;
  /// What a ZeRO treatment leaves of the choices for the parameters.
  const std::vector<specs::OffloadTreatment>& parameter_offload(const specs::ZeroTreatment& zero) const;

  const Legality& legality() const { return legality_; }
  std::int64_t largest_world_size() const;
  std::uint64_t outer_points() const;
  std::uint64_t outer_points(const MeshSpace& mesh) const;
  /// Of one (micro-batch, schedule) pair, sequence parallelism, module treatments and recomputation of a
  /// mesh.
  std::uint64_t treatments_of_one_kind(const MeshSpace& mesh) const;
  bool has_experts() const { return experiment_.model.mixture.has_value(); }
  bool contains_world_size(std::int64_t world_size) const;
  /// Calls `visit(const specs::RegularPlacement&)` for each outer point of the mesh, in a fixed order.
  template <class Visit>
  void for_each(const MeshSpace& mesh, Visit&& visit) const;

  std::vector<Dimension> dimensions() const;

  /// The values that [search] names for tensor, context, pipeline and data and the rules refuse.
  std::vector<Dimension> refused_restrictions() const;

 private:
  Dimension stage_cuts(const std::set<std::int64_t>& pipeline,
                       const std::set<std::int64_t>& virtual_stages) const;
  Dimension recomputed_layers(const std::set<specs::Recomputation>& recomputation) const;
  void add_meshes(std::int64_t world_size);
  void add_mesh(const MeshDegrees& mesh);
  std::int64_t largest_legal_world_size(std::int64_t devices) const;
  std::vector<MeshDegrees> with_expert_degrees(const MeshDegrees& dense) const;
  std::size_t batch_list(const MeshDegrees& mesh);
  std::size_t schedule_list(const MeshDegrees& mesh, std::int64_t accumulation);
  std::size_t zero_list(const MeshDegrees& mesh);
  std::size_t module_list(const MeshDegrees& mesh);

  const specs::Experiment& experiment_;
  const specs::StackSpec& stack_;
  Legality legality_;
  std::vector<std::int64_t> tensor_degrees_;
  std::vector<std::int64_t> context_degrees_;
  std::vector<std::int64_t> pipeline_degrees_;
  std::vector<std::int64_t> data_degrees_;
  std::vector<specs::Recomputation> recomputations_;
  std::vector<std::int64_t> local_steps_;
  OffloadChoices offload_;
  std::vector<specs::OffloadTreatment> parameters_stay_, activations_stay_;
  std::vector<MeshSpace> meshes_;
  std::vector<std::vector<BatchChoice>> batch_lists_;
  std::vector<std::vector<ScheduleChoice>> schedule_lists_;
  std::vector<std::vector<specs::ZeroTreatment>> zero_lists_;
  std::vector<std::vector<specs::ModuleTreatments>> module_lists_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::size_t> batch_index_;  ///< by (data, pipeline)
  /// By (pipeline, long enough, groups of micro-batches that there are enough for).
  std::map<std::tuple<std::int64_t, bool, std::int64_t>, std::size_t> schedule_index_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::size_t> module_index_;  ///< by (tensor, context)
  std::map<std::array<std::int64_t, 4>, std::size_t> zero_index_;
};

/// Divisors of a positive number in ascending order.
std::vector<std::int64_t> divisors(std::int64_t number);

template <class Visit>
void Space::for_each(const MeshSpace& mesh, Visit&& visit) const {
  specs::RegularPlacement point = mesh.corner();
  const auto treatments = [&] {
    for (const specs::Recomputation recomputation : recomputations_)
      for (const specs::ZeroTreatment& zero : zeros(mesh))
        for (const bool delayed : {false, true})
          for (const specs::OffloadTreatment& optimizer : optimizer_offload(delayed))
            for (const specs::OffloadTreatment& parameters : parameter_offload(zero))
              for (const specs::OffloadTreatment& activations : activation_offload(mesh.mesh))
                for (const std::int64_t steps : local_steps(mesh, zero)) {
                  point.recomputation = recomputation;
                  point.zero = zero;
                  point.offload = {optimizer, parameters, activations, delayed};
                  point.local_steps = steps;
                  visit(static_cast<const specs::RegularPlacement&>(point));
                }
  };
  const auto kinds = [&] {
    for (const bool sequence_parallel : mesh.sequence_parallel)
      for (const specs::ModuleTreatments& treated : modules(mesh)) {
        point.sequence_parallel = sequence_parallel;
        point.modules = treated;
        treatments();
      }
  };
  for (const BatchChoice& batch : batches(mesh)) {
    point.micro_batch = batch.micro_batch;
    point.accumulation = batch.accumulation;
    for (const ScheduleChoice& choice : schedules(batch)) {
      point.schedule = choice.kind;
      point.virtual_stages = choice.virtual_stages;
      point.micro_batch_group = choice.micro_batch_group;
      kinds();
    }
  }
}

}  // namespace planner
