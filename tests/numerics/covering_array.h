// Rows in which every pair of values that can stand together does: t-way testing with t = 2 and constraints.
//
// Greedy, one row at a time (Cohen et al., "The AETG System", 1997, without its random choices): a row starts
// with a pair that is still wanted, and each further dimension takes the value that brings the most wanted
// pairs, among those from which the row can still be completed. The same arguments give the same rows.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace runtime::numerics {

/// By dimension the index of its value; `open` where not yet chosen.
using CoveringRow = std::vector<int>;
inline constexpr int open = -1;

/// Must hold once all `dimensions` are chosen; the row may be open elsewhere.
struct CoveringRule {
  std::vector<std::size_t> dimensions;
  std::function<bool(const CoveringRow&)> holds;
};

class CoveringArray {
 public:
  /// `values`: how many each dimension has.
  CoveringArray(std::vector<int> values, std::vector<CoveringRule> rules);

  /// The row without open places that keeps what `partial` chooses and breaks no rule, with the lowest values
  /// first in the order in which dimensions are most constrained; empty where there is none.
  CoveringRow complete(CoveringRow partial) const;

  /// Every pair of values of two dimensions for which some row breaks no rule stands in at least `times`
  /// rows, or in all there are.
  std::vector<CoveringRow> pairs(int times = 1) const;

 private:
  struct Wanted;
  bool allowed(const CoveringRow& row, std::size_t chosen) const;
  bool complete_from(CoveringRow& row, std::size_t position) const;
  CoveringRow extend(CoveringRow row, const Wanted& wanted) const;

  std::vector<int> values_;
  std::vector<CoveringRule> rules_;
  std::vector<std::vector<std::size_t>> rules_of_;  ///< by dimension
  std::vector<std::size_t> order_;                  ///< dimensions, the most constrained first
};

}  // namespace runtime::numerics
