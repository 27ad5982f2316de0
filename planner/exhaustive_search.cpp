#include "planner/exhaustive_search.h"

#include <algorithm>

namespace planner {
namespace {

/// Bytes above the limit of the first constraint that is broken; the constraint itself, or nothing.
struct Excess {
  std::optional<Constraint> constraint;
  std::int64_t bytes = 0;
};

Excess excess_of(const Price& price, const Pricer& pricer) {
  if (!pricer.fits_device(price))
    return {Constraint::device_memory, price.peak_device_bytes - pricer.usable_device_bytes()};
  if (!pricer.fits_host(price))
    return {Constraint::host_memory, price.peak_host_bytes_per_node - pricer.usable_host_bytes()};
  return {};
}

void record_infeasible(RegionResult& region, Constraint constraint, std::int64_t excess_bytes,
                       const PricedCandidate& candidate, const Pricer& pricer) {
  auto part = std::find_if(region.infeasible.begin(), region.infeasible.end(),
                           [&](const InfeasiblePart& entry) { return entry.constraint == constraint; });
  if (part == region.infeasible.end()) {
    region.infeasible.push_back({constraint, 1, candidate, candidate});
    return;
  }
  ++part->candidates;
  if (is_better(candidate.price, part->best.price)) part->best = candidate;
  if (excess_bytes < excess_of(part->nearest.price, pricer).bytes) part->nearest = candidate;
}

void choose_best(SearchResult& result) {
  std::vector<PricedCandidate> best_of_meshes;
  for (const RegionResult& region : result.regions)
    if (region.best) best_of_meshes.push_back(*region.best);
  std::stable_sort(
      best_of_meshes.begin(), best_of_meshes.end(),
      [](const PricedCandidate& a, const PricedCandidate& b) { return is_better(a.price, b.price); });
  if (best_of_meshes.empty()) return;
  result.best = best_of_meshes.front();
  const std::size_t last = std::min(best_of_meshes.size(), most_runners_up + 1);
  result.runners_up.assign(best_of_meshes.begin() + 1,
                           best_of_meshes.begin() + static_cast<std::ptrdiff_t>(last));
}

}  // namespace

bool is_better(const Price& price, const Price& than) {
  if (price.objective != than.objective) return price.objective < than.objective;
  return price.peak_device_bytes < than.peak_device_bytes;
}

std::uint64_t SearchResult::priced() const {
  std::uint64_t total = 0;
  for (const RegionResult& region : regions) total += region.priced;
  return total;
}

std::uint64_t SearchResult::infeasible() const {
  std::uint64_t total = 0;
  for (const RegionResult& region : regions)
    for (const InfeasiblePart& part : region.infeasible) total += part.candidates;
  return total;
}

std::optional<PricedCandidate> SearchResult::nearest_infeasible(const Pricer& pricer) const {
  std::optional<PricedCandidate> nearest;
  for (const RegionResult& region : regions)
    for (const InfeasiblePart& part : region.infeasible)
      if (!nearest || excess_of(part.nearest.price, pricer).bytes < excess_of(nearest->price, pricer).bytes)
        nearest = part.nearest;
  return nearest;
}

std::optional<PricedCandidate> SearchResult::best_infeasible() const {
  std::optional<PricedCandidate> found;
  for (const RegionResult& region : regions)
    for (const InfeasiblePart& part : region.infeasible)
      if (!found || is_better(part.best.price, found->price)) found = part.best;
  return found;
}

SearchResult exhaustive_search(const Space& space, const Pricer& pricer, const std::atomic<bool>* stop) {
  SearchResult result;
  const auto stopped = [&] { return stop != nullptr && stop->load(std::memory_order_relaxed); };
  for (const MeshSpace& mesh_space : space.meshes()) {
    RegionResult region{mesh_space.mesh, 0, std::nullopt, {}};
    mesh_space.for_each([&](const specs::RegularPlacement& placement) {
      if (stopped()) {
        result.complete = false;
        return;
      }
      const PricedCandidate candidate{placement, pricer.price(placement)};
      const Excess excess = excess_of(candidate.price, pricer);
      if (excess.constraint) {
        record_infeasible(region, *excess.constraint, excess.bytes, candidate, pricer);
        return;
      }
      ++region.priced;
      if (!region.best || is_better(candidate.price, region.best->price)) region.best = candidate;
    });
    result.regions.push_back(std::move(region));
  }
  choose_best(result);
  return result;
}

}  // namespace planner
