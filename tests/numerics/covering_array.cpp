#include "tests/numerics/covering_array.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

namespace runtime::numerics {

CoveringArray::CoveringArray(std::vector<int> values, std::vector<CoveringRule> rules)
    : values_(std::move(values)),
      rules_(std::move(rules)),
      rules_of_(values_.size()),
      order_(values_.size()) {
  for (std::size_t rule = 0; rule < rules_.size(); ++rule)
    for (const std::size_t dimension : rules_[rule].dimensions) rules_of_[dimension].push_back(rule);
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  std::stable_sort(order_.begin(), order_.end(), [this](std::size_t a, std::size_t b) {
    return rules_of_[a].size() > rules_of_[b].size();
  });
}

/// Whether no rule that `chosen` completes is broken.
bool CoveringArray::allowed(const CoveringRow& row, std::size_t chosen) const {
  return std::all_of(rules_of_[chosen].begin(), rules_of_[chosen].end(), [&](std::size_t index) {
    const CoveringRule& rule = rules_[index];
    const bool complete = std::all_of(rule.dimensions.begin(), rule.dimensions.end(),
                                      [&](std::size_t dimension) { return row[dimension] != open; });
    return !complete || rule.holds(row);
  });
}

bool CoveringArray::complete_from(CoveringRow& row, std::size_t position) const {
  while (position < order_.size() && row[order_[position]] != open) ++position;
  if (position == order_.size()) return true;
  const std::size_t dimension = order_[position];
  for (int value = 0; value < values_[dimension]; ++value) {
    row[dimension] = value;
    if (allowed(row, dimension) && complete_from(row, position + 1)) return true;
  }
  row[dimension] = open;
  return false;
}

CoveringRow CoveringArray::complete(CoveringRow partial) const {
  for (std::size_t dimension = 0; dimension < values_.size(); ++dimension)
    if (partial[dimension] != open && !allowed(partial, dimension)) return {};
  if (!complete_from(partial, 0)) return {};
  return partial;
}

/// How often each pair must still be seen.
struct CoveringArray::Wanted {
  std::vector<std::size_t> first;  ///< by dimension, the index of its first value among all values
  std::size_t total = 0;
  std::vector<int> times;  ///< total × total, the half above the diagonal

  int& of(std::size_t a, int value_a, std::size_t b, int value_b) {
    const std::size_t x = first[a] + static_cast<std::size_t>(value_a);
    const std::size_t y = first[b] + static_cast<std::size_t>(value_b);
    return times[std::min(x, y) * total + std::max(x, y)];
  }
  int of(std::size_t a, int value_a, std::size_t b, int value_b) const {
    return const_cast<Wanted&>(*this).of(a, value_a, b, value_b);
  }
};

/// Gives every open place of a row that can be completed a value.
CoveringRow CoveringArray::extend(CoveringRow row, const Wanted& wanted) const {
  for (const std::size_t dimension : order_) {
    if (row[dimension] != open) continue;
    std::vector<std::pair<int, int>> choices;  // wanted pairs, negative; value
    for (int value = 0; value < values_[dimension]; ++value) {
      int gain = 0;
      for (std::size_t other = 0; other < row.size(); ++other)
        if (row[other] != open) gain += std::max(0, wanted.of(dimension, value, other, row[other]));
      choices.emplace_back(-gain, value);
    }
    std::sort(choices.begin(), choices.end());
    for (const auto& [gain, value] : choices) {
      row[dimension] = value;
      if (allowed(row, dimension) && !complete(row).empty()) break;
    }
  }
  return row;
}

std::vector<CoveringRow> CoveringArray::pairs(int times) const {
  Wanted wanted;
  for (const int count : values_) {
    wanted.first.push_back(wanted.total);
    wanted.total += static_cast<std::size_t>(count);
  }
  wanted.times.assign(wanted.total * wanted.total, times);

  std::vector<CoveringRow> rows;
  std::set<CoveringRow> seen;
  const CoveringRow all_open(values_.size(), open);
  for (int round = times; round > 0; --round)
    for (std::size_t a = 0; a < values_.size(); ++a)
      for (std::size_t b = a + 1; b < values_.size(); ++b)
        for (int value_a = 0; value_a < values_[a]; ++value_a)
          for (int value_b = 0; value_b < values_[b]; ++value_b) {
            if (wanted.of(a, value_a, b, value_b) < round) continue;
            CoveringRow row = all_open;
            row[a] = value_a;
            row[b] = value_b;
            if (complete(row).empty()) {
              wanted.of(a, value_a, b, value_b) = 0;
              continue;
            }
            row = extend(std::move(row), wanted);
            for (std::size_t x = 0; x < row.size(); ++x)
              for (std::size_t y = x + 1; y < row.size(); ++y) --wanted.of(x, row[x], y, row[y]);
            if (seen.insert(row).second) rows.push_back(std::move(row));
          }
  return rows;
}

}  // namespace runtime::numerics
