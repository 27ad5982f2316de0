// Prices every candidate of the space, one after the other: the reference that the search is held to. Shares
// no code with it but the prices.
#pragma once

#include <atomic>

#include "planner/pricing/pricing.h"
#include "planner/search/search_result.h"
#include "specs/language/experiment.h"
#include "specs/language/stack.h"

namespace planner {

inline constexpr std::string_view exhaustive_method = "exhaustive";

/// Stops between candidates once `*stop` is true. One region a mesh: priced where any member fits.
SearchResult exhaustive_search(const specs::Experiment& experiment, const specs::StackSpec& stack,
                               const Pricer& pricer, const std::atomic<bool>* stop = nullptr);

}  // namespace planner
