// The inner choices of an outer point (inner_choice.h) written out for the verification of certificates: how
// many there are, and any of them. Independent of inner_choice, stage_chain and stage_partition.
#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <tuple>
#include <vector>

#include "planner/count.h"
#include "specs/language/experiment.h"
#include "specs/language/stack.h"
#include "specs/plan/placement.h"

namespace planner {

class WrittenOutChoices {
 public:
  /// Keeps references.
  WrittenOutChoices(const specs::Experiment& experiment, const specs::StackSpec& stack);

  Count count(const specs::RegularPlacement& outer) const;

  /// One of them: a cut and numbers of recomputed layers, each drawn at random.
  specs::Placement draw(const specs::RegularPlacement& outer, std::mt19937_64& random) const;

 private:
  bool free_cuts(const specs::RegularPlacement& outer) const;
  bool may_cut_before(std::int64_t unit) const;
  std::vector<std::int64_t> recomputed_choices(const specs::RegularPlacement& outer,
                                               std::int64_t layers) const;

  const specs::Experiment& experiment_;
  const specs::StackSpec& stack_;
  std::int64_t blocks_;
  std::int64_t units_;
  using Key = std::tuple<std::int64_t, std::int64_t, specs::Recomputation>;
  mutable std::map<Key, Count> counts_;
};

}  // namespace planner
