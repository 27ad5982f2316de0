// The search space written out for the verification of certificates and for the exhaustive reference: plain
// loops over every number, judged by the rules as they read and by specs/plan/placement_check. Slow, and
// independent of planner/space and planner/legality.
#pragma once

#include <cstdint>
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

using WrittenOutSchedule = std::pair<specs::ScheduleKind, std::int64_t>;  ///< kind, virtual stages

enum class OffloadedPart : std::uint8_t { optimizer, parameters, activations };

class WrittenOutSpace {
 public:
  /// Keeps references.
  WrittenOutSpace(const specs::Experiment& experiment, const specs::StackSpec& stack);

  const std::vector<WrittenOutMesh>& meshes() const { return meshes_; }
  std::vector<WrittenOutSchedule> schedules(std::int64_t pipeline, std::int64_t accumulation) const;
  std::vector<bool> sequence_parallel(const specs::RegularPlacement& mesh) const;
  std::vector<specs::Recomputation> recomputations() const;
  std::vector<specs::ZeroTreatment> zeros(const specs::RegularPlacement& mesh) const;
  std::vector<std::int64_t> local_steps(const specs::RegularPlacement& mesh,
                                        const specs::ZeroTreatment& zero) const;
  std::vector<specs::OffloadTreatment> offload(OffloadedPart part, const specs::ZeroTreatment& zero) const;

  template <class Visit>
  void for_each_member(const WrittenOutMesh& mesh, Visit&& visit) const;

 private:
  void add_world(std::int64_t world);
  void add_meshes(std::int64_t tensor, std::int64_t context, std::int64_t pipeline, std::int64_t data);
  void add_orders(WrittenOutMesh mesh);
  bool experts_allowed(const specs::RegularPlacement& mesh) const;
  bool shape_allowed(const specs::RegularPlacement& mesh) const;
  bool groups_allowed(const specs::RegularPlacement& mesh) const;

  const specs::Experiment& experiment_;
  const specs::SearchSpec& search_;
  const specs::StackSpec& stack_;
  std::int64_t layers_;
  std::vector<WrittenOutMesh> meshes_;
};

template <class Visit>
void WrittenOutSpace::for_each_member(const WrittenOutMesh& mesh, Visit&& visit) const {
  specs::RegularPlacement member = mesh.corner;
  const std::vector<specs::Recomputation> recomputed = recomputations();
  for (const std::int64_t micro_batch : mesh.micro_batches) {
    member.micro_batch = micro_batch;
    member.accumulation = experiment_.training.global_batch / member.data / micro_batch;
    for (const auto& [kind, virtual_stages] : schedules(member.pipeline, member.accumulation)) {
      member.schedule = kind;
      member.virtual_stages = virtual_stages;
      for (const bool on : sequence_parallel(member))
        for (const specs::Recomputation recomputation : recomputed)
          for (const specs::ZeroTreatment& zero : zeros(member))
            for (const auto& optimizer : offload(OffloadedPart::optimizer, zero))
              for (const auto& parameters : offload(OffloadedPart::parameters, zero))
                for (const auto& activations : offload(OffloadedPart::activations, zero))
                  for (const std::int64_t steps : local_steps(member, zero)) {
                    member.sequence_parallel = on;
                    member.recomputation = recomputation;
                    member.zero = zero;
                    member.offload = {optimizer, parameters, activations, false};
                    member.local_steps = steps;
                    visit(static_cast<const specs::RegularPlacement&>(member));
                  }
    }
  }
}

}  // namespace planner
