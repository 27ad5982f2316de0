// A region of a certificate as the verification reads it: which members of the written-out space it holds,
// how many, and some of them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/space/count.h"
#include "planner/space/written_out_choices.h"
#include "planner/space/written_out_space.h"
#include "specs/plan/plan.h"

namespace planner {

/// The values of a member as certificates write them, by dimension: a value that belongs to another stands
/// after a slash ("interleaved/4", "1/node", "cpu/3").
std::string certificate_value(const specs::RegularPlacement& member, std::string_view dimension);

class ClaimedRegion {
 public:
  /// With `choices` a member is an outer point and one of its inner choices; without there is one of each.
  ClaimedRegion(const specs::CertificateRegion& region, const WrittenOutSpace& space,
                std::int64_t global_batch, const WrittenOutChoices* choices = nullptr);

  const specs::CertificateRegion& claim() const { return claim_; }
  /// Dimensions that certificates do not know.
  std::vector<std::string> unknown_dimensions() const;
  /// Members, by this code.
  const Count& members() const { return members_; }

  /// Any member; nothing where there is none.
  std::optional<specs::RegularPlacement> draw(std::mt19937_64& random) const;
  /// The member that keeps as much of `plan` as the region allows, with a value or two changed at random;
  /// nothing where that is not legal.
  std::optional<specs::RegularPlacement> draw_near(const specs::RegularPlacement& plan,
                                                   std::mt19937_64& random) const;
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (const std::size_t mesh : meshes_) for_each_of_mesh(space_.meshes()[mesh], visit);
  }

 private:
  bool admits(std::string_view dimension, const std::string& value) const;
  // What the region leaves of a dimension, beside the values chosen before.
  std::vector<std::int64_t> micro_batches(const WrittenOutMesh& mesh) const;
  const std::vector<WrittenOutSchedule>& schedules(std::int64_t pipeline, std::int64_t accumulation) const;
  std::vector<bool> sequence_parallel(const specs::RegularPlacement& mesh) const;
  const std::vector<specs::ModuleTreatments>& modules(const specs::RegularPlacement& mesh) const;
  std::vector<specs::Recomputation> recomputations() const;
  std::vector<specs::ZeroTreatment> zeros(const specs::RegularPlacement& mesh) const;
  std::vector<specs::OffloadTreatment> offload(OffloadedPart part, const specs::RegularPlacement& mesh,
                                               const specs::ZeroTreatment& zero) const;
  std::vector<bool> delayed_updates(const specs::OffloadTreatment& optimizer) const;
  std::vector<std::int64_t> local_steps(const specs::RegularPlacement& mesh,
                                        const specs::ZeroTreatment& zero) const;

  /// Everything but the micro-batch and the schedule.
  struct Treatment {
    bool sequence_parallel = false;
    specs::ModuleTreatments modules;
    specs::Recomputation recomputation = specs::Recomputation::none;
    specs::ZeroTreatment zero;
    specs::StageOffload offload;
    std::int64_t local_steps = 1;
  };
  std::vector<Treatment> treatments_of(const specs::RegularPlacement& mesh) const;
  template <class Visit>
  void for_each_of_mesh(const WrittenOutMesh& mesh, Visit& visit) const;

  std::size_t treatments(const specs::RegularPlacement& mesh) const;
  Count count_of_mesh(const WrittenOutMesh& mesh) const;
  Count count_of_choices(const WrittenOutMesh& mesh) const;
  std::optional<specs::RegularPlacement> complete(const WrittenOutMesh& mesh,
                                                  const specs::RegularPlacement* like,
                                                  std::mt19937_64& random) const;

  const specs::CertificateRegion& claim_;
  const WrittenOutChoices* choices_;
  const WrittenOutSpace& space_;
  std::int64_t global_batch_;
  std::map<std::string, std::vector<std::string>, std::less<>> values_;
  std::vector<std::size_t> meshes_;  ///< that hold any member
  std::vector<Count> up_to_;         ///< members of the meshes up to and with each
  /// By pipeline degree and number of micro-batches.
  mutable std::map<std::pair<std::int64_t, std::int64_t>, std::vector<WrittenOutSchedule>> schedules_of_;
  /// Where the region names some, by tensor and context degree.
  mutable std::map<std::pair<std::int64_t, std::int64_t>, std::vector<specs::ModuleTreatments>> modules_of_;
  Count members_;
};

template <class Visit>
void ClaimedRegion::for_each_of_mesh(const WrittenOutMesh& mesh, Visit& visit) const {
  specs::RegularPlacement member = mesh.corner;
  const std::vector<Treatment> treatments = treatments_of(mesh.corner);
  for (const std::int64_t size : micro_batches(mesh)) {
    member.micro_batch = size;
    member.accumulation = global_batch_ / member.data / size;
    for (const auto& [kind, virtual_stages, group] : schedules(member.pipeline, member.accumulation)) {
      member.schedule = kind;
      member.virtual_stages = virtual_stages;
      member.micro_batch_group = group;
      for (const Treatment& treatment : treatments) {
        member.sequence_parallel = treatment.sequence_parallel;
        member.modules = treatment.modules;
        member.recomputation = treatment.recomputation;
        member.zero = treatment.zero;
        member.offload = treatment.offload;
        member.local_steps = treatment.local_steps;
        visit(static_cast<const specs::RegularPlacement&>(member));
      }
    }
  }
}

}  // namespace planner
