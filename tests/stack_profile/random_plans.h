// Plans drawn from the whole space of the stack "dsrun" over experiments of tiny models on up to 8 ranks.
#pragma once

#include <cstdint>
#include <random>
#include <string>

#include "specs/language/experiment.h"
#include "specs/plan/plan.h"

namespace planner {

class RandomPlans {
 public:
  explicit RandomPlans(std::uint64_t seed) : random_(seed) {}

  /// As the planner writes it; a mesh, then each choice of it, is as likely as any other.
  specs::Plan next();

 private:
  specs::Experiment experiment();
  template <class List>
  auto any(const List& list) {
    return list[std::uniform_int_distribution<std::size_t>(0, list.size() - 1)(random_)];
  }

  std::mt19937_64 random_;
};

/// The same model and recipe on one rank, the whole batch at once.
specs::Plan single_rank(const specs::Plan& plan);

std::string describe(const specs::Plan& plan);

}  // namespace planner
