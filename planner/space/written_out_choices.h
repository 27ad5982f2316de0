// The inner choices of an outer point (inner_choice.h) written out for the verification of certificates: how
// many there are, and any of them; on several kinds of nodes also how the stages or the replicas lie over
// them (group_layouts.h). Independent of inner_choice, stage_chain, stage_partition and group_layouts.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "planner/space/count.h"
#include "specs/language/experiment.h"
#include "specs/language/stack.h"
#include "specs/plan/placement.h"

namespace planner {

class WrittenOutChoices {
 public:
  /// Keeps references.
  WrittenOutChoices(const specs::Experiment& experiment, const specs::StackSpec& stack);

  Count count(const specs::RegularPlacement& outer) const;
  bool follow_shares() const { return groups_.size() > 1; }

  /// Whether any outer point may have several.
  bool several() const;

  /// Calls `visit(const specs::Placement&)` for each; one that returns false ends it.
  template <class Visit>
  void for_each(const specs::RegularPlacement& outer, Visit&& visit) const {
    visit_choices(outer, [&](const specs::Placement& placement) {
      if constexpr (std::is_void_v<decltype(visit(placement))>) {
        visit(placement);
        return true;
      } else {
        return visit(placement);
      }
    });
  }

  /// One of them: a cut and numbers of recomputed layers, each drawn at random.
  specs::Placement draw(const specs::RegularPlacement& outer, std::mt19937_64& random) const;

 private:
  /// These return whether they came to the end.
  using Visit = std::function<bool(const specs::Placement&)>;
  bool visit_choices(const specs::RegularPlacement& outer, const Visit& visit) const;
  bool visit_stages(const specs::RegularPlacement& outer, const Visit& visit) const;
  bool visit_numbers(const specs::RegularPlacement& outer, specs::Placement cut, const Visit& visit) const;
  bool visit_cuts(const specs::RegularPlacement& outer, const Visit& visit) const;
  Count count_of_cuts(const specs::RegularPlacement& outer) const;
  specs::Placement draw_cut(const specs::RegularPlacement& outer, std::mt19937_64& random) const;
  /// The ranks of the pipeline over the groups, in this order of the groups.
  void set_groups(const specs::RegularPlacement& outer, const std::vector<std::size_t>& order,
                  specs::Placement& placement) const;
  bool stages_on_groups(const specs::RegularPlacement& outer) const;
  /// Micro-batches of the replicas of the first and of the second group.
  using Shares = std::pair<std::int64_t, std::int64_t>;
  std::vector<Shares> shares(const specs::RegularPlacement& outer) const;
  specs::Placement with_shares(const specs::RegularPlacement& outer, const Shares& shares) const;
  bool free_cuts(const specs::RegularPlacement& outer) const;
  bool may_cut_before(std::int64_t unit) const;
  bool numbered(specs::Recomputation mode) const;
  std::vector<std::int64_t> recomputed_choices(const specs::RegularPlacement& outer,
                                               std::int64_t layers) const;
  std::vector<std::int64_t> numbers_for_all(const specs::RegularPlacement& outer) const;
  bool same_for_all(const specs::RegularPlacement& outer) const;
  void set_numbers(const specs::RegularPlacement& outer, const std::vector<std::int64_t>& of_rank,
                   specs::Placement& placement) const;

  const specs::Experiment& experiment_;
  const specs::StackSpec& stack_;
  std::int64_t blocks_;
  std::int64_t units_;
  specs::RecomputedLayerNumbers numbers_;
  std::vector<std::int64_t> groups_;  ///< devices of each
  using Key = std::tuple<std::int64_t, std::int64_t, specs::Recomputation>;
  mutable std::map<Key, Count> counts_;
};

}  // namespace planner
