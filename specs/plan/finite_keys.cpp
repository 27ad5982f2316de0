#include "specs/plan/finite_keys.h"

#include <cmath>

#include "specs/plan/json_keys.h"

namespace specs {

void FiniteKeys::look_at(double value, std::string_view name) {
  if (non_finite_.empty() && !std::isfinite(value)) found_in(name);
}

void FiniteKeys::found_in(std::string_view name) {
  non_finite_.insert(0, name);
  non_finite_.insert(0, 1, '/');
}

void FiniteKeys::number(const Key& key, double& value, NumberRange /*range*/) { look_at(value, key.name); }

void FiniteKeys::quantity(const Key& key, double& value, Unit unit, NumberRange /*range*/) {
  if (!std::isfinite(value)) look_at(value, json_name(key.name, unit));
}

void FiniteKeys::number_map(const Key& key, std::map<std::string, double>& values, NumberRange /*range*/) {
  if (!non_finite_.empty()) return;
  for (const auto& [name, value] : values) {
    look_at(value, name);
    if (!non_finite_.empty()) return found_in(key.name);
  }
}

void FiniteKeys::table(const Key& key, const Keys& keys) {
  if (!non_finite_.empty()) return;
  keys(*this);
  if (!non_finite_.empty()) found_in(key.name);
}

void FiniteKeys::optional_table(const Key& key, bool& present, const Keys& keys) {
  if (present) table(key, keys);
}

void FiniteKeys::named_table(const Key& key, const NamedEntries& /*entries*/, const Keys& keys) {
  table(key, keys);
}

void FiniteKeys::optional_named_table(const Key& key, bool& present, const NamedEntries& /*entries*/,
                                      const Keys& keys) {
  if (present) table(key, keys);
}

void FiniteKeys::table_list(const Key& key, std::size_t size,
                            const std::function<void(std::size_t)>& /*resize*/,
                            const std::function<void(KeyVisitor&, std::size_t)>& keys) {
  for (std::size_t index = 0; index < size && non_finite_.empty(); ++index) {
    keys(*this, index);
    if (non_finite_.empty()) continue;
    found_in(std::to_string(index));
    found_in(key.name);
  }
}

void FiniteKeys::flag(const Key& /*key*/, bool& /*value*/) {}
void FiniteKeys::integer(const Key& /*key*/, std::int64_t& /*value*/, IntegerRange /*range*/) {}
void FiniteKeys::bytes(const Key& /*key*/, std::int64_t& /*value*/, IntegerRange /*range*/) {}
void FiniteKeys::text(const Key& /*key*/, std::string& /*value*/) {}
void FiniteKeys::one_of(const Key& /*key*/, std::string& /*value*/,
                        const std::vector<std::string>& /*names*/) {}
void FiniteKeys::integer_list(const Key& /*key*/, std::vector<std::int64_t>& /*values*/,
                              IntegerRange /*range*/) {}
void FiniteKeys::list_of(const Key& /*key*/, std::vector<std::string>& /*values*/,
                         const std::vector<std::string>& /*names*/) {}
void FiniteKeys::flag_list(const Key& /*key*/, std::vector<bool>& /*values*/) {}
void FiniteKeys::text_list(const Key& /*key*/, std::vector<std::string>& /*values*/) {}
void FiniteKeys::shorthand(const Key& /*key*/, const std::vector<std::string>& /*names*/,
                           const std::function<void(const std::string&)>& /*apply*/) {}

}  // namespace specs
