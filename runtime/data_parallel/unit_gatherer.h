// ZeRO 3: makes the parameters of a unit whole before they are used and drops them after.
//
// The order in which units are used is known before a step begins; the gathers of the next ones run while
// one is used. All ranks go through the same order, so that their collectives match.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "runtime/comm/communicator.h"
#include "runtime/model/parameter_registry.h"
#include "runtime/model/unit_pass.h"
#include "runtime/train/fault_switches.h"

namespace runtime {

class UnitGatherer final : public UnitPassListener {
 public:
  struct Options {
    std::int64_t prefetch = 1;  ///< units gathered ahead of the one in use
    /// The last n units of a forward pass stay gathered until their backward pass.
    std::int64_t kept_units = 0;
    FaultSwitches faults;
  };

  /// `shard`: the ranks that together hold the parameters. References must outlive it.
  UnitGatherer(ParameterRegistry& registry, const Communicator& shard, Options options);

  /// The uses that follow, pass after pass, each forward pass in one piece; nothing is gathered before or
  /// after.
  void begin(const std::vector<UnitUses>& passes);
  /// Starts the gathers of the uses that come next.
  void gather_ahead();

  void forward_begins(std::int64_t unit) override;
  void forward_ends(std::int64_t unit) override;
  void backward_begins(std::int64_t unit) override;
  void backward_ends(std::int64_t unit) override;

  /// Since the last begin: units gathered so far, and the most that were whole or on their way at once, those
  /// that wait for their backward pass not counted.
  std::int64_t gathers() const { return gathers_; }
  std::int64_t peak_gathered() const { return peak_gathered_; }

 private:
  struct Use {
    UnitUse use;
    bool keep = false;  ///< after it, until the unit's backward pass
  };

  void acquire(std::int64_t unit, UnitUse::Kind kind);
  void release(std::int64_t unit);
  void gather(std::int64_t unit);
  void drop(std::int64_t unit);
  void count();

  ParameterRegistry& registry_;
  const Communicator& shard_;
  Options options_;
  std::map<std::int64_t, std::vector<std::size_t>> buckets_;  ///< by unit
  std::vector<Use> order_;
  std::size_t next_ = 0;                                       ///< place in the order
  std::map<std::int64_t, std::vector<PendingWork>> gathered_;  ///< whole, or on their way
  std::set<std::int64_t> kept_;                                ///< of these, between their passes
  std::int64_t gathers_ = 0;
  std::int64_t peak_gathered_ = 0;
};

}  // namespace runtime
