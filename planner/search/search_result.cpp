#include "planner/search/search_result.h"

#include <algorithm>

namespace planner {

bool is_better(const Price& price, const Price& than) {
  if (price.objective != than.objective) return price.objective < than.objective;
  if (price.peak_host_bytes_per_node != than.peak_host_bytes_per_node)
    return price.peak_host_bytes_per_node < than.peak_host_bytes_per_node;
  return price.peak_device_bytes < than.peak_device_bytes;
}

Excess excess_of(const Price& price, const Pricer& pricer) {
  if (!pricer.fits_device(price))
    return {Constraint::device_memory, price.peak_device_bytes - pricer.usable_device_bytes()};
  if (!pricer.fits_host(price))
    return {Constraint::host_memory, price.peak_host_bytes_per_node - pricer.usable_host_bytes()};
  return {};
}

double SearchResult::gap() const {
  if (!best || best->price.objective <= 0) return 0;
  return std::max(0.0, 1 - lower_bound / best->price.objective);
}

void choose_best(std::vector<PricedCandidate> best_of_meshes, SearchResult& result) {
  std::stable_sort(
      best_of_meshes.begin(), best_of_meshes.end(),
      [](const PricedCandidate& a, const PricedCandidate& b) { return is_better(a.price, b.price); });
  for (PricedCandidate& candidate : best_of_meshes) {
    const auto same_mesh = [&](const PricedCandidate& other) {
      return mesh_of(other.placement) == mesh_of(candidate.placement);
    };
    if (!result.best) {
      result.best = std::move(candidate);
    } else if (result.runners_up.size() < most_runners_up && !same_mesh(*result.best) &&
               std::none_of(result.runners_up.begin(), result.runners_up.end(), same_mesh)) {
      result.runners_up.push_back(std::move(candidate));
    }
  }
}

}  // namespace planner
