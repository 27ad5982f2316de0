#include "planner/search/incumbents.h"

#include <algorithm>

namespace planner {

void Incumbents::offer(std::size_t mesh, const PricedCandidate& candidate) {
  std::optional<PricedCandidate>& best = best_[mesh];
  if (best && !is_better(candidate.price, best->price)) return;
  best = candidate;
  if (std::find(leaders_.begin(), leaders_.end(), mesh) == leaders_.end()) leaders_.push_back(mesh);
  std::stable_sort(leaders_.begin(), leaders_.end(),
                   [&](std::size_t a, std::size_t b) { return is_better(best_[a]->price, best_[b]->price); });
  constexpr std::size_t places = most_runners_up + 1;
  if (leaders_.size() > places) leaders_.resize(places);
  if (leaders_.size() == places) last_ = best_[leaders_.back()]->price.objective;
}

std::vector<PricedCandidate> Incumbents::best_of_meshes() const {
  std::vector<PricedCandidate> all;
  for (const std::optional<PricedCandidate>& best : best_)
    if (best) all.push_back(*best);
  return all;
}

}  // namespace planner
