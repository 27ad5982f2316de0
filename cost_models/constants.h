// The fitted and measured constants of the cost models, by name, as the catalog holds them.
//
// Every constant has a meaning and a source or a fit. The formulas never hold a number of their own that a
// measurement could change.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace cost_models {

struct Constant {
  std::string name;  ///< dotted path in the catalog, "gemm.efficiency_16bit.hopper"
  double value = 0;
  double prior = 0;     ///< what one would say before any fit; the fit is drawn towards it
  double spread = 0;    ///< standard deviation of the prior, of the natural logarithm; 0: not fitted
  std::string meaning;  ///< with its unit
};

class ConstantTable {
 public:
  /// Reads TOML text; a table with a `value` is a constant. Throws std::runtime_error on malformed text,
  /// which only a broken build can hold.
  static ConstantTable parse(std::string_view text);
  void add(std::string_view text);
  /// The constants compiled into the program.
  static const ConstantTable& built_in();

  double value(std::string_view name) const { return constants_[index(name)].value; }
  /// `value(name)` where there is such a constant, else `fallback`.
  double value_or(std::string_view name, double fallback) const;
  std::size_t index(std::string_view name) const;
  bool contains(std::string_view name) const;
  const std::vector<Constant>& constants() const { return constants_; }
  void set(std::size_t index, double value) { constants_[index].value = value; }

 private:
  std::vector<Constant> constants_;
  struct NameHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view name) const { return std::hash<std::string_view>{}(name); }
  };
  std::unordered_map<std::string, std::size_t, NameHash, std::equal_to<>> by_name_;
};

}  // namespace cost_models
