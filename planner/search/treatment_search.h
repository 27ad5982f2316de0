// The treatments of one mesh, micro-batch and schedule: settles all of them, box by box.
#pragma once

#include <array>
#include <cstddef>
#include <unordered_map>
#include <vector>

#include "planner/pricing/pricing.h"
#include "planner/search/incumbents.h"
#include "planner/search/lower_bounds.h"
#include "planner/search/member_counts.h"
#include "planner/search/near_misses.h"
#include "planner/search/search_result.h"
#include "planner/space/space.h"

namespace planner {

/// "bound" of a certificate's regions.
inline constexpr std::string_view balanced_pipeline_rule = "balanced pipeline";
inline constexpr std::string_view smallest_shares_rule = "smallest shares";
inline constexpr std::string_view adds_to_rule = "adds to one that fits";
inline constexpr std::string_view fits_rule = "fits";
inline constexpr std::string_view cuts_rule = "stage cuts";

/// A bound is made of other sums than a price: what rounding may part them by.
inline constexpr double bound_margin = 1e-12;

class TreatmentSearch {
 public:
  TreatmentSearch(const Space& space, const Pricer& pricer, MemberCounts& counts, Incumbents& incumbents)
      : space_(space), pricer_(pricer), counts_(counts), incumbents_(incumbents), near_misses_(pricer) {}

  /// Regions that tile the treatments with this sequence parallelism; `point` has everything but
  /// recomputation, ZeRO, offload, delayed updates and local steps.
  std::vector<Region> settle(const MeshSpace& mesh, std::size_t mesh_index, specs::RegularPlacement point);

  /// While false, regions are settled and not written down.
  void record(bool on) { records_ = on; }
  bool records() const { return records_; }

  /// Prices what keeps everything on the device, or the smallest shares where [search] wants some, and may be
  /// of use: candidates for a start, found without a look at all shares.
  void probe(const MeshSpace& mesh, std::size_t mesh_index, specs::RegularPlacement point);

  const NearMisses& near_misses() const { return near_misses_; }

 private:
  /// Half-open ranges of the choices for optimizer, parameters and activations.
  struct Range {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::size_t size() const { return end - begin; }
  };
  /// A point that fits: nothing that recomputes or moves more, but is else the same, is below its bound.
  struct Dominator {
    specs::Recomputation recomputation = specs::Recomputation::none;
    specs::StageOffload offload;
    double objective = 0;
  };
  using Box = std::array<Range, 3>;
  using Choices = std::array<const std::vector<specs::OffloadTreatment>*, 3>;

  std::vector<Region> settle_zero(specs::RegularPlacement& point);
  void settle_box(const Box& box, specs::RegularPlacement& point, std::vector<Region>& regions);
  void price_point(const Box& box, const specs::RegularPlacement& point, std::vector<Region>& regions);
  void split(const Box& box, bool smallest_fits, specs::RegularPlacement& point,
             std::vector<Region>& regions);
  /// What is above this is of no use.
  double enough() const;
  double bound_of(const specs::RegularPlacement& point) const;
  const Solved& solved(const specs::RegularPlacement& point);
  const Dominator* dominator_of(const specs::RegularPlacement& point) const;
  void take(const Box& box, bool largest, specs::RegularPlacement& point) const;
  void add(const Box& box, Region region, std::vector<Region>& regions) const;
  void add_infeasible(const Box& box, Constraint constraint, std::int64_t needed_bytes,
                      std::vector<Region>& regions) const;
  void note_infeasible(const specs::RegularPlacement& point, double bound);

  const Space& space_;
  const Pricer& pricer_;
  MemberCounts& counts_;
  Incumbents& incumbents_;
  NearMisses near_misses_;
  /// By hash: none is solved twice.
  struct Known {
    specs::RegularPlacement point;
    Solved solved;
    Effort effort;
  };
  std::unordered_map<std::size_t, std::vector<Known>> solved_;
  std::vector<Dominator>* dominators_ = nullptr;  ///< of the ZeRO treatment and local steps
  Choices choices_{};
  std::size_t mesh_index_ = 0;
  bool records_ = true;
  Count members_of_point_;
};

}  // namespace planner
