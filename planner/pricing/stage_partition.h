// Cuts a chain of units into pipeline stages: the best cut, or one with a proven gap.
//
// The objective (`price`) is the critical path of a schedule and has no optimal substructure; the search goes
// through a bound that has. Each part [first, end) has, as stage i, a lower bound b_i(first, end) of every
// partition it stands in, never smaller for a part that holds more and never larger for one that starts
// later with the same end. So
//
//   B* = min over partitions of max over stages of b_i  ≤  the optimum of `price`.
//
// B* is found by thresholds. For a threshold τ let each stage in turn take as much as fits and stays within
// τ. Exchange: in any partition within τ let the first stage that takes less take this much; the parts after
// it start later (or end up empty and are refilled from the last), hold no more, and stay within τ and in
// memory. So τ is reached by some partition if and only if it is by this one, and bisection over τ ends at
// the least bound that a partition attains. What stage 0 adds to every bound (its gradient reduction ends the
// step) is added for each of its ends in turn; it grows with that end, so that the first end whose bound
// exceeds the best known closes the list.
//
// Recomputed layers: a part takes the fewest that make it fit. `price` never falls when a stage takes longer,
// so for each cut these are optimal, and no bound sees more.
//
// From the partition that attains B*, single cuts are moved while that lowers `price`. Then every partition
// whose bound is below the best price is visited, depth first, up to a limit. Where the visit ends before the
// limit the result is the optimum; where not, B* bounds it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace planner {

/// A part of the chain as one stage.
struct StagePart {
  std::int64_t first = 0;
  std::int64_t end = 0;
  std::int64_t recomputed_layers = 0;
  bool operator==(const StagePart&) const = default;
};

class PartitionProblem {
 public:
  virtual ~PartitionProblem() = default;
  virtual std::int64_t stages() const = 0;
  /// Where stages may begin and end, ascending: the chain's begin, the places for cuts, the chain's end.
  virtual std::span<const std::int64_t> places() const = 0;
  /// The part with the fewest recomputed layers that fits as stage `stage`; nothing where none does. What
  /// holds more never fits with fewer.
  virtual std::optional<StagePart> fitted(std::int64_t stage, std::int64_t first, std::int64_t end) const = 0;
  /// b_i of above, without what stage 0 adds.
  virtual double bound(std::int64_t stage, const StagePart& part) const = 0;
  /// What stage 0 adds to the bound of every stage where it ends at `end`; never smaller for a later end.
  virtual double added_by_first(std::int64_t end) const = 0;
  virtual double price(std::span<const StagePart> parts) const = 0;
};

struct Partition {
  std::vector<StagePart> parts;
  double price = 0;
  double lower_bound = 0;  ///< of the price of every partition; equals `price` where it is proven optimal
};

/// Whether any partition fits, whatever it costs.
bool any_partition_fits(const PartitionProblem& problem);

/// Whether any partition that fits has a bound up to this: whether B* is not above it, without B*.
bool any_partition_within(const PartitionProblem& problem, double seconds);

/// A partition that attains B*, with its price: where the search begins. Nothing where no partition fits.
std::optional<Partition> least_bound_partition(const PartitionProblem& problem);
/// The search from there on.
Partition best_partition_from(const PartitionProblem& problem, const Partition& start,
                              std::int64_t visit_limit);

/// Visits at most `visit_limit` partitions in the last step. Nothing where no partition fits.
std::optional<Partition> best_partition(const PartitionProblem& problem, std::int64_t visit_limit);

}  // namespace planner
