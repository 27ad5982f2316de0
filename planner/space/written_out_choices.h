// The inner choices of an outer point (inner_choice.h) written out for the verification of certificates: how
// many there are, and any of them; on several kinds of nodes also how the stages or the replicas lie over
// them (group_layouts.h). Independent of inner_choice, stage_chain, stage_partition and group_layouts.
#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <tuple>
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

  /// One of them: a cut and numbers of recomputed layers, each drawn at random.
  specs::Placement draw(const specs::RegularPlacement& outer, std::mt19937_64& random) const;

 private:
  Count count_of_cuts(const specs::RegularPlacement& outer) const;
  specs::Placement draw_cut(const specs::RegularPlacement& outer, std::mt19937_64& random) const;
  bool stages_on_groups(const specs::RegularPlacement& outer) const;
  /// Micro-batches of the replicas of the first and of the second group.
  using Shares = std::pair<std::int64_t, std::int64_t>;
  std::vector<Shares> shares(const specs::RegularPlacement& outer) const;
  bool free_cuts(const specs::RegularPlacement& outer) const;
  bool may_cut_before(std::int64_t unit) const;
  std::vector<std::int64_t> recomputed_choices(const specs::RegularPlacement& outer,
                                               std::int64_t layers) const;

  const specs::Experiment& experiment_;
  const specs::StackSpec& stack_;
  std::int64_t blocks_;
  std::int64_t units_;
  std::vector<std::int64_t> groups_;  ///< devices of each
  using Key = std::tuple<std::int64_t, std::int64_t, specs::Recomputation>;
  mutable std::map<Key, Count> counts_;
};

}  // namespace planner
