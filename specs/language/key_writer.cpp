#include "specs/language/key_writer.h"

#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "specs/language/value_tree.h"

namespace specs {

std::string number_toml(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return fmt::format("{}", value);
}

std::string KeyWriter::path_of(std::string_view key) const {
  return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

void KeyWriter::line(const Key& key, const std::string& toml) {
  own_keys_ += fmt::format("{} = {}\n", key.name, toml);
}

void KeyWriter::flag(const Key& key, bool& value) {
  if (value || !key.optional) line(key, value ? "true" : "false");
}

void KeyWriter::integer(const Key& key, std::int64_t& value, IntegerRange /*range*/) {
  if (value != 0 || !key.optional) line(key, fmt::format("{}", value));
}

void KeyWriter::number(const Key& key, double& value, NumberRange /*range*/) {
  if (value != 0 || !key.optional) line(key, number_toml(value));
}

void KeyWriter::quantity(const Key& key, double& value, Unit unit, NumberRange /*range*/) {
  if (value != 0 || !key.optional) line(key, quantity_toml(value, unit));
}

void KeyWriter::bytes(const Key& key, std::int64_t& value, IntegerRange /*range*/) {
  // Beyond 2^53 a quantity, which is read as a double, would not hold every integer.
  constexpr std::int64_t largest_exact = std::int64_t{1} << 53;
  const bool exact = -largest_exact <= value && value <= largest_exact;
  line(key, exact ? quantity_toml(static_cast<double>(value), Unit::bytes) : fmt::format("{}", value));
}

void KeyWriter::text(const Key& key, std::string& value) {
  if (!value.empty() || !key.optional) line(key, toml_string(value));
}

void KeyWriter::one_of(const Key& key, std::string& value, const std::vector<std::string>& /*names*/) {
  text(key, value);
}

void KeyWriter::integer_list(const Key& key, std::vector<std::int64_t>& values, IntegerRange /*range*/) {
  if (!values.empty() || !key.optional) line(key, fmt::format("[{}]", fmt::join(values, ", ")));
}

void KeyWriter::list_of(const Key& key, std::vector<std::string>& values,
                        const std::vector<std::string>& /*names*/) {
  text_list(key, values);
}

void KeyWriter::text_list(const Key& key, std::vector<std::string>& values) {
  std::vector<std::string> written;
  for (const std::string& value : values) written.push_back(toml_string(value));
  if (!values.empty() || !key.optional) line(key, fmt::format("[{}]", fmt::join(written, ", ")));
}

void KeyWriter::flag_list(const Key& key, std::vector<bool>& values) {
  std::vector<std::string_view> written;
  for (const bool value : values) written.emplace_back(value ? "true" : "false");
  if (!values.empty() || !key.optional) line(key, fmt::format("[{}]", fmt::join(written, ", ")));
}

void KeyWriter::number_map(const Key& key, std::map<std::string, double>& values, NumberRange /*range*/) {
  if (values.empty()) return;
  tables_ += fmt::format("\n[{}]\n", path_of(key.name));
  for (const auto& [name, value] : values)
    tables_ += fmt::format("{} = {}\n", toml_string(name), number_toml(value));
}

void KeyWriter::table(const Key& key, const Keys& keys) {
  const std::string path = path_of(key.name);
  KeyWriter writer(path);
  keys(writer);
  const bool only_tables = writer.own_keys_.empty() && !writer.tables_.empty();
  tables_ += only_tables ? writer.tables_ : fmt::format("\n[{}]\n{}", path, writer.text());
}

void KeyWriter::optional_table(const Key& key, bool& present, const Keys& keys) {
  if (present) table(key, keys);
}

void KeyWriter::named_table(const Key& key, const NamedEntries& /*entries*/, const Keys& keys) {
  table(key, keys);
}

void KeyWriter::optional_named_table(const Key& key, bool& present, const NamedEntries& /*entries*/,
                                     const Keys& keys) {
  if (present) table(key, keys);
}

void KeyWriter::table_list(const Key& key, std::size_t size,
                           const std::function<void(std::size_t)>& /*resize*/,
                           const std::function<void(KeyVisitor&, std::size_t)>& keys) {
  const std::string path = path_of(key.name);
  for (std::size_t i = 0; i < size; ++i) {
    KeyWriter writer(path);
    keys(writer, i);
    tables_ += fmt::format("\n[[{}]]\n{}", path, writer.text());
  }
}

void KeyWriter::shorthand(const Key& /*key*/, const std::vector<std::string>& /*names*/,
                          const std::function<void(const std::string&)>& /*apply*/) {}

}  // namespace specs
