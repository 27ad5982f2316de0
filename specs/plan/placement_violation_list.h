// What the parts of the placement check share: the list they add to, and how they word things.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "specs/plan/placement_check.h"

namespace specs {

/// Beyond any machine.
inline constexpr std::int64_t largest_degree = std::int64_t{1} << 24;

/// "stages/3/mesh/tensor", spelled out only where it is needed; the name must live as long.
struct StageField {
  std::size_t index = 0;
  std::string_view name;
  operator std::string() const;
};

class PlacementViolationList {
 public:
  void refuse(std::string field, std::string message, std::string remedy = {}) {
    violations_.push_back({std::move(field), std::move(message), std::move(remedy)});
  }
  template <class Field>
  void require_range(const Field& field, std::int64_t value, std::int64_t low, std::int64_t high) {
    if (value < low || value > high) refuse_range(field, value, low, high);
  }
  bool empty() const { return violations_.empty(); }
  /// What several stages have in common is one violation, at the first of them, with the stages named.
  std::vector<PlacementViolation> take();

 private:
  void refuse_range(std::string field, std::int64_t value, std::int64_t low, std::int64_t high);

  std::vector<PlacementViolation> violations_;
};

inline StageField stage_field(std::size_t index, std::string_view name) { return {index, name}; }

/// The divisors of `number`, for remedies; the smaller ones where there are many.
std::string divisors(std::int64_t number);

/// The product of numbers that are not negative, cut off at 2^62.
std::int64_t multiply(std::initializer_list<std::int64_t> factors);

}  // namespace specs
