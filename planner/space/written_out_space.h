// The search space written out for the verification of certificates and for the exhaustive reference: plain
// loops over every number, judged by the rules as they read and by specs/plan/placement_check. Slow, and
// independent of planner/space and planner/legality.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "specs/language/experiment.h"
#include "specs/language/stack.h"
#include "specs/plan/placement.h"

namespace planner {

struct WrittenOutMesh {
  specs::RegularPlacement corner;  ///< the mesh, its order and buckets, all else neutral
  std::vector<std::int64_t> micro_batches;
};

struct WrittenOutSchedule {
  specs::ScheduleKind kind = specs::ScheduleKind::one_forward_one_backward;
  std::int64_t virtual_stages = 1;
  std::int64_t micro_batch_group = 0;
  bool operator==(const WrittenOutSchedule&) const = default;
};

enum class OffloadedPart : std::uint8_t { optimizer, parameters, activations };

class WrittenOutSpace {
 public:
  /// Keeps references. Not for several threads at once.
  WrittenOutSpace(const specs::Experiment& experiment, const specs::StackSpec& stack);

  const std::vector<WrittenOutMesh>& meshes() const { return meshes_; }
  std::vector<WrittenOutSchedule> schedules(std::int64_t pipeline, std::int64_t accumulation) const;
  /// Of the groups of micro-batches that [search] names.
  std::int64_t largest_group() const;
  std::vector<bool> sequence_parallel(const specs::RegularPlacement& mesh) const;
  const std::vector<specs::ModuleTreatments>& modules(const specs::RegularPlacement& mesh) const;
  std::vector<specs::Recomputation> recomputations() const;
  std::vector<specs::ZeroTreatment> zeros(const specs::RegularPlacement& mesh) const;
  std::vector<std::int64_t> local_steps(const specs::RegularPlacement& mesh,
                                        const specs::ZeroTreatment& zero) const;
  std::vector<specs::OffloadTreatment> offload(OffloadedPart part, const specs::RegularPlacement& mesh,
                                               const specs::ZeroTreatment& zero) const;

  std::vector<bool> delayed_updates(const specs::OffloadTreatment& optimizer) const;

  template <class Visit>
  void for_each_member(const WrittenOutMesh& mesh, Visit&& visit) const;

 private:
  template <class Visit>
  void for_each_end(specs::RegularPlacement& member, Visit&& visit) const;
  void add_world(std::int64_t world);
  void add_meshes(std::int64_t tensor, std::int64_t context, std::int64_t pipeline, std::int64_t data);
  specs::BucketSizes buckets(const specs::RegularPlacement& mesh) const;
  void add_orders(WrittenOutMesh mesh);
  std::vector<specs::ModuleTreatments> judged_modules(const specs::RegularPlacement& mesh) const;
  bool updates(const specs::ZeroTreatment& zero) const;
  bool group_allowed(specs::ScheduleKind kind, std::int64_t pipeline, std::int64_t group) const;
  bool numbered(specs::Recomputation mode) const;
  bool experts_allowed(const specs::RegularPlacement& mesh) const;
  bool shards_fill_nodes(const specs::RegularPlacement& mesh) const;
  bool shape_allowed(const specs::RegularPlacement& mesh) const;
  bool groups_allowed(const specs::RegularPlacement& mesh) const;

  const specs::Experiment& experiment_;
  const specs::SearchSpec& search_;
  const specs::StackSpec& stack_;
  std::int64_t layers_;
  std::vector<WrittenOutMesh> meshes_;
  /// By tensor and context degree.
  mutable std::map<std::pair<std::int64_t, std::int64_t>, std::vector<specs::ModuleTreatments>> modules_;
};

template <class Visit>
void WrittenOutSpace::for_each_member(const WrittenOutMesh& mesh, Visit&& visit) const {
  specs::RegularPlacement member = mesh.corner;
  const std::vector<specs::Recomputation> recomputed = recomputations();
  for (const std::int64_t micro_batch : mesh.micro_batches) {
    member.micro_batch = micro_batch;
    member.accumulation = experiment_.training.global_batch / member.data / micro_batch;
    for (const auto& [kind, virtual_stages, group] : schedules(member.pipeline, member.accumulation)) {
      member.schedule = kind;
      member.virtual_stages = virtual_stages;
      member.micro_batch_group = group;
      for (const bool on : sequence_parallel(member))
        for (const specs::ModuleTreatments& treated : modules(mesh.corner)) {
          member.sequence_parallel = on;
          member.modules = treated;
          for (const specs::Recomputation recomputation : recomputed)
            for (const specs::ZeroTreatment& zero : zeros(member)) {
              member.recomputation = recomputation;
              member.zero = zero;
              for_each_end(member, visit);
            }
        }
    }
  }
}

template <class Visit>
void WrittenOutSpace::for_each_end(specs::RegularPlacement& member, Visit&& visit) const {
  for (const auto& optimizer : offload(OffloadedPart::optimizer, member, member.zero))
    for (const bool delayed : delayed_updates(optimizer))
      for (const auto& parameters : offload(OffloadedPart::parameters, member, member.zero))
        for (const auto& activations : offload(OffloadedPart::activations, member, member.zero))
          for (const std::int64_t steps : local_steps(member, member.zero)) {
            member.offload = {optimizer, parameters, activations, delayed};
            member.local_steps = steps;
            visit(static_cast<const specs::RegularPlacement&>(member));
          }
}

}  // namespace planner
