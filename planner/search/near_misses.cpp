#include "planner/search/near_misses.h"

#include <algorithm>

namespace planner {

double NearMisses::lacking(const Price& price) const {
  const Excess excess = excess_of(price, pricer_);
  if (!excess.constraint) return 0;
  const bool device = *excess.constraint == Constraint::device_memory;
  return static_cast<double>(excess.bytes) /
         static_cast<double>(device ? pricer_.usable_device_bytes() : pricer_.usable_host_bytes());
}

bool NearMisses::dominates(const Price& memory, double objective) const {
  const double lacks = lacking(memory);
  return std::any_of(misses_.begin(), misses_.end(), [&](const Miss& miss) {
    return miss.lacking <= lacks && miss.candidate.price.objective <= objective;
  });
}

void NearMisses::add(const PricedCandidate& candidate) {
  const double lacks = lacking(candidate.price);
  if (lacks == 0 || dominates(candidate.price, candidate.price.objective)) return;
  std::erase_if(misses_, [&](const Miss& miss) {
    return miss.lacking >= lacks && miss.candidate.price.objective >= candidate.price.objective;
  });
  misses_.push_back({candidate, lacks});
}

std::optional<PricedCandidate> NearMisses::better_than(const Price& plan) const {
  const Miss* nearest = nullptr;
  for (const Miss& miss : misses_)
    if (is_better(miss.candidate.price, plan) && (nearest == nullptr || miss.lacking < nearest->lacking))
      nearest = &miss;
  return nearest == nullptr ? std::nullopt : std::optional(nearest->candidate);
}

}  // namespace planner
