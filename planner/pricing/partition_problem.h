// A chain of units that is cut into pipeline stages, as the algorithms over its cuts see it.
//
// A step is the critical path of a schedule. Every partition in which [first, end) is stage i takes at least
//
//   path_i  until the last backward pass of that stage ends (what follows for all ranks at the end included)
//   after_i for what the rank then does by itself: it reduces its gradients
//
// and, where the last gradient goes back to the first stage (all schedules but the zero-bubble ones), each
// stage before it ends its last backward pass later by what lies between them: with back_i the seconds from
// the last backward pass of stage i on to that of stage 0,
//
//   P >= path_i + back_i + max over r <= i of (after_r - back_r).
//
// Two parts that follow each other have a path of their own, which sees both, and so has a run of parts each
// of which takes long.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>

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

  /// Never smaller for a part that holds more. For one that starts later with the same end neither this nor
  /// `path + back` is larger.
  virtual double path(std::int64_t stage, const StagePart& part) const = 0;
  /// Never smaller for a part that holds more.
  virtual double after(std::int64_t stage, const StagePart& part) const = 0;
  /// Whether the last gradient goes back to the first stage.
  virtual bool goes_back() const { return true; }
  /// Of a stage that begins there; 0 for stage 0.
  virtual double back(std::int64_t /*stage*/, std::int64_t /*first*/) const { return 0; }
  /// Until the last backward pass of the second part ends, which follows the first: `stage` and the next.
  virtual double pair_path(std::int64_t /*stage*/, const StagePart& /*part*/,
                           const StagePart& /*next*/) const {
    return 0;
  }

  /// Whether it takes as long as the longest of every partition at least.
  virtual bool takes_long(std::int64_t /*stage*/, const StagePart& /*part*/) const { return false; }
  /// Until the last backward pass of `part` ends, which ends a run of so many stages that take long.
  virtual double run_path(std::int64_t /*stage*/, const StagePart& /*part*/, std::int64_t /*length*/) const {
    return 0;
  }

  virtual double price(std::span<const StagePart> parts) const = 0;
};

inline constexpr double any_price = std::numeric_limits<double>::max();

}  // namespace planner
