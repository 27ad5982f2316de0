// Cuts a chain of units into pipeline stages: the best cut, or one with a proven gap.
//
// The objective (`price`) is the critical path of a schedule and has no optimal substructure; the search goes
// through bounds that have. For a threshold, whether any partition stays within is answered stage by stage
// (partition_thresholds.h), then, where one does, with neighbours in pairs and each rank's own end
// (partition_layers.h). The least threshold that is reached, by bisection, bounds every price.
//
// Recomputed layers: a part takes the fewest that make it fit. `price` never falls when a stage takes longer,
// so for each cut these are optimal, and no bound sees more.
//
// From the partition that attains the bound, single cuts are moved while that lowers `price`. Then every
// partition whose bounds are below the best price is visited, depth first, up to a number of prices. From a
// part that begins and ends as one did from which the visit came to no end, it comes to none again where no
// more than then is late at the end: bounds ask for nothing else of what was before. Where the visit ends
// before the limit the result is the optimum; where not, the bound is what is proven.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/pricing/partition_problem.h"

namespace planner {

struct Partition {
  std::vector<StagePart> parts;
  double price = 0;
  double lower_bound = 0;  ///< of the price of every partition that was of use; `price` where it is optimal
};

/// Whether any partition fits, whatever it costs.
bool any_partition_fits(const PartitionProblem& problem);

/// Whether any partition that fits has bounds up to this; quickly, or with all bounds.
bool any_partition_roughly_within(const PartitionProblem& problem, double seconds);
bool any_partition_within(const PartitionProblem& problem, double seconds);

/// How far to look for the best cut.
enum class Effort : std::uint8_t {
  bound_alone,  ///< a cut whose bound is hardly above the least, whatever its price
  some,         ///< and a few of the cuts around it
  whole,        ///< and cuts around it, and those that its bound leaves
};

/// The best partition with a price up to `enough`; asks for about as many prices as are given, at least one.
/// Where none has one, the best that was found, and `lower_bound` is above `enough`, or as near to it as is
/// proven. Nothing where no partition fits.
std::optional<Partition> best_partition(const PartitionProblem& problem, std::int64_t most_prices,
                                        double enough = any_price, Effort effort = Effort::whole);

}  // namespace planner
