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

/// Whether every parameter's update is one step behind. What of an optimizer's state stays on the device is
/// not delayed, and which parameters these are depends on the buckets.
bool delays_everything(const specs::Plan& plan);

/// The same model and recipe on one rank, the whole batch at once; all updates delayed where any are.
specs::Plan single_rank(const specs::Plan& plan);

std::string describe(const specs::Plan& plan);

}  // namespace planner
