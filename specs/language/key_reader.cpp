#include "specs/language/key_reader.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>

#include "specs/language/foreign_names.h"

namespace specs {

namespace {

constexpr double largest_exact_integer = 9007199254740992.0;  // 2^53

/// "-4" or "9223372036854775808": written as a number that no quotes would bring into range.
bool reads_as_outside(const std::string& text, IntegerRange range) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (text.empty() || end != text.c_str() + text.size()) return false;
  return number < static_cast<double>(range.minimum) || number > static_cast<double>(range.maximum);
}

/// One value or an array of values, as lists may be written.
std::vector<const Value*> items_of(const Value& value) {
  std::vector<const Value*> items;
  if (value.kind == ValueKind::array)
    for (const Value& element : value.elements) items.push_back(&element);
  else
    items.push_back(&value);
  return items;
}

std::string known_names(const std::vector<std::string>& names) {
  constexpr std::size_t most = 12;
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < most; ++i) {
    if (i > 0) text += ", ";
    text += names[i].empty() ? "\"\"" : names[i];
  }
  if (names.size() > most) text += fmt::format(", … ({} in all)", names.size());
  return text;
}

std::string suggestion(std::string_view seen, const std::vector<std::string>& names) {
  if (const auto nearest = nearest_name(seen, names)) return fmt::format("did you mean \"{}\"?", *nearest);
  return fmt::format("known: {}", known_names(names));
}

}  // namespace

bool KeyPositions::failed(const std::string& path) const {
  for (std::string around = path; !around.empty();) {
    if (failed_.contains(around) || failed_.contains(around + ".preset")) return true;
    const std::size_t dot = around.rfind('.');
    around = dot == std::string::npos ? std::string() : around.substr(0, dot);
  }
  return false;
}

SourceSpan KeyPositions::find(const std::vector<std::string>& paths) const {
  for (const std::string& path : paths)
    if (const auto found = spans_.find(path); found != spans_.end()) return found->second;
  for (std::string around = paths.empty() ? std::string() : paths.front(); !around.empty();) {
    const std::size_t dot = around.rfind('.');
    around = dot == std::string::npos ? std::string() : around.substr(0, dot);
    if (const auto found = spans_.find(around); found != spans_.end()) return found->second;
  }
  const auto document = spans_.find("");
  return document != spans_.end() ? document->second : SourceSpan{};
}

KeyReader::KeyReader(const Value& table, std::string path, ReadState& state)
    : table_(table), path_(std::move(path)), state_(state) {}

std::string KeyReader::path_of(std::string_view key) const {
  return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

const Value* KeyReader::take(const Key& key) {
  known_.emplace_back(key.name);
  const TableEntry* entry = table_.find(key.name);
  if (entry == nullptr) return nullptr;
  const bool is_table = entry->value.kind == ValueKind::table;
  state_.positions.add(path_of(key.name), is_table ? entry->key_span : entry->value.span);
  return &entry->value;
}

void KeyReader::refuse_unknown_keys() {
  for (const TableEntry& entry : table_.entries) {
    if (std::find(known_.begin(), known_.end(), entry.key) != known_.end()) continue;
    const std::string where = path_.empty() ? "at the top of the file" : fmt::format("in [{}]", path_);
    const std::string known_as = known_name_of(entry.key, known_);
    state_.diagnostics.add(
        diagnostic_at(entry.key_span, fmt::format("unknown key \"{}\" {}", entry.key, where),
                      known_as.empty() ? suggestion(entry.key, known_)
                                       : fmt::format("here it is called \"{}\"", known_as)));
  }
}

void KeyReader::wrong_type(const Key& key, const Value& value, const std::string& expected,
                           std::string remedy) {
  Diagnostic diagnostic = diagnostic_at(
      value.span,
      fmt::format("{}: expected {}, saw {} {}", path_of(key.name), expected, kind_name(value.kind),
                  value.kind == ValueKind::table ? "{ … }" : shown(value)),
      std::move(remedy));
  state_.diagnostics.add(std::move(diagnostic));
}

void KeyReader::out_of_range(const Key& key, const Value& value, const std::string& error,
                             const std::string& expected) {
  state_.positions.add_failed(path_of(key.name));
  Diagnostic diagnostic = diagnostic_at(value.span, fmt::format("{} = {}", path_of(key.name), error));
  diagnostic.expected = expected;
  state_.diagnostics.add(std::move(diagnostic));
}

void KeyReader::flag(const Key& key, bool& out) {
  const Value* value = take(key);
  if (value == nullptr) return;
  if (value->kind == ValueKind::boolean)
    out = value->boolean;
  else
    wrong_type(key, *value, "true or false");
}

bool KeyReader::read_integer(const Key& key, const Value& value, IntegerRange range, std::int64_t& out) {
  std::int64_t read = 0;
  if (value.kind == ValueKind::integer) {
    read = value.integer;
  } else if (value.kind == ValueKind::number) {
    const double number = value.number;
    if (!std::isfinite(number) || std::abs(number) > largest_exact_integer) {
      out_of_range(key, value, fmt::format("{} is no exact integer", number), describe(range));
      return false;
    }
    if (number != std::floor(number)) {
      wrong_type(key, value, "integer",
                 fmt::format("write {}", static_cast<std::int64_t>(std::floor(number))));
      return false;
    }
    read = static_cast<std::int64_t>(number);
  } else {
    if (value.kind == ValueKind::text && reads_as_outside(value.text, range))
      out_of_range(key, value, fmt::format("{} is out of range", value.text), describe(range));
    else
      wrong_type(key, value, "integer",
                 value.kind == ValueKind::text ? "write the number without quotes" : std::string());
    return false;
  }
  const std::string error = range_error(read, range);
  if (!error.empty()) {
    out_of_range(key, value, error, describe(range));
    return false;
  }
  out = read;
  return true;
}

void KeyReader::integer(const Key& key, std::int64_t& out, IntegerRange range) {
  if (const Value* value = take(key)) read_integer(key, *value, range, out);
}

bool KeyReader::read_number(const Key& key, const Value& value, NumberRange range, double& out) {
  if (value.kind != ValueKind::integer && value.kind != ValueKind::number) {
    wrong_type(key, value, "number",
               value.kind == ValueKind::text ? "write the number without quotes" : std::string());
    return false;
  }
  const double read = value.kind == ValueKind::integer ? static_cast<double>(value.integer) : value.number;
  const std::string error = range_error(read, range);
  if (!error.empty()) {
    out_of_range(key, value, error, describe(range));
    return false;
  }
  out = read;
  return true;
}

void KeyReader::number(const Key& key, double& out, NumberRange range) {
  if (const Value* value = take(key)) read_number(key, *value, range, out);
}

void KeyReader::number_map(const Key& key, std::map<std::string, double>& out, NumberRange range) {
  const Value* value = take(key);
  if (value == nullptr) return;
  if (value->kind != ValueKind::table) return wrong_type(key, *value, "table of numbers");
  for (const TableEntry& entry : value->entries) {
    const std::string path = fmt::format("{}.{}", key.name, entry.key);
    if (double number = 0; read_number({.name = path, .meaning = {}}, entry.value, range, number))
      out[entry.key] = number;
  }
}

void KeyReader::quantity(const Key& key, double& out, Unit unit, NumberRange range) {
  const Value* value = take(key);
  if (value == nullptr) return;
  const std::string expected =
      fmt::format("{} (a number, or a string such as \"{}\")", unit_name(unit), unit_example(unit));
  double read = 0;
  if (value->kind == ValueKind::integer) {
    read = static_cast<double>(value->integer);
  } else if (value->kind == ValueKind::number) {
    read = value->number;
  } else if (value->kind == ValueKind::text) {
    const auto parsed = parse_quantity(value->text, unit);
    if (!parsed) return wrong_type(key, *value, expected);
    read = *parsed;
  } else {
    return wrong_type(key, *value, expected);
  }
  const std::string error = range_error(read, range);
  if (error.empty())
    out = read;
  else
    out_of_range(key, *value, error, fmt::format("{}, in {}", describe(range), unit_name(unit)));
}

void KeyReader::bytes(const Key& key, std::int64_t& out, IntegerRange range) {
  const Value* value = take(key);
  if (value == nullptr) return;
  if (value->kind == ValueKind::integer || value->kind == ValueKind::number) {
    read_integer(key, *value, range, out);
    return;
  }
  const auto parsed =
      value->kind == ValueKind::text ? parse_quantity(value->text, Unit::bytes) : std::optional<double>();
  if (!parsed)
    return wrong_type(key, *value,
                      "bytes (an integer, or a string with a unit such as \"80 GiB\" or \"40 GB\")");
  Value counted = *value;
  counted.kind = ValueKind::number;
  counted.number = std::floor(*parsed);  // "79.15 GiB" is no whole number of bytes
  read_integer(key, counted, range, out);
}

void KeyReader::text(const Key& key, std::string& out) {
  const Value* value = take(key);
  if (value == nullptr) return;
  if (value->kind == ValueKind::text)
    out = value->text;
  else
    wrong_type(key, *value, "string");
}

bool KeyReader::read_name(const Key& key, const Value& value, const std::vector<std::string>& names,
                          std::string& out) {
  if (value.kind != ValueKind::text) {
    wrong_type(key, value, fmt::format("one of {}", known_names(names)));
    return false;
  }
  if (std::find(names.begin(), names.end(), value.text) == names.end()) {
    state_.positions.add_failed(path_of(key.name));
    Diagnostic diagnostic =
        diagnostic_at(value.span, fmt::format("{}: unknown value {}", path_of(key.name), shown(value)));
    diagnostic.expected = fmt::format("one of {}", known_names(names));
    if (const auto nearest = nearest_name(value.text, names))
      diagnostic.remedy = fmt::format("did you mean \"{}\"?", *nearest);
    state_.diagnostics.add(std::move(diagnostic));
    return false;
  }
  out = value.text;
  return true;
}

void KeyReader::one_of(const Key& key, std::string& out, const std::vector<std::string>& names) {
  if (const Value* value = take(key)) read_name(key, *value, names, out);
}

void KeyReader::shorthand(const Key& key, const std::vector<std::string>& names,
                          const std::function<void(const std::string&)>& apply) {
  std::string name;
  const Value* value = take(key);
  if (value != nullptr && read_name(key, *value, names, name)) apply(name);
}

void KeyReader::imported_model(const Key& key, ModelSpec& model) {
  const Value* value = take(key);
  if (value == nullptr) return;
  if (value->kind != ValueKind::text) return wrong_type(key, *value, "the path of a config.json");
  Result<ModelSpec> imported;
  if (state_.positions.given(path_of("preset")))
    imported.diagnostics.add(diagnostic_at(
        value->span, fmt::format("{} beside preset: the model starts from one of them", path_of(key.name)),
        "leave one out"));
  else if (!state_.import_model)
    imported.diagnostics.add(diagnostic_at(value->span,
                                           fmt::format("{} is not available here", path_of(key.name)),
                                           "write the model out, or name a preset"));
  else
    imported = state_.import_model(state_.folder / value->text);
  state_.diagnostics.append(imported.diagnostics);
  if (imported)
    model = std::move(*imported);
  else
    state_.positions.add_failed(path_of("preset"));  // what the model would have started from
}

void KeyReader::integer_list(const Key& key, std::vector<std::int64_t>& out, IntegerRange range) {
  const Value* value = take(key);
  if (value == nullptr) return;
  std::vector<std::int64_t> read;
  for (const Value* item : items_of(*value))
    if (std::int64_t number = 0; read_integer(key, *item, range, number)) read.push_back(number);
  out = std::move(read);
}

void KeyReader::list_of(const Key& key, std::vector<std::string>& out,
                        const std::vector<std::string>& names) {
  const Value* value = take(key);
  if (value == nullptr) return;
  std::vector<std::string> read;
  for (const Value* item : items_of(*value))
    if (std::string name; read_name(key, *item, names, name)) read.push_back(std::move(name));
  out = std::move(read);
}

void KeyReader::flag_list(const Key& key, std::vector<bool>& out) {
  const Value* value = take(key);
  if (value == nullptr) return;
  std::vector<bool> read;
  for (const Value* item : items_of(*value)) {
    if (item->kind == ValueKind::boolean)
      read.push_back(item->boolean);
    else
      wrong_type(key, *item, "true or false");
  }
  out = std::move(read);
}

void KeyReader::text_list(const Key& key, std::vector<std::string>& out) {
  const Value* value = take(key);
  if (value == nullptr) return;
  std::vector<std::string> read;
  for (const Value* item : items_of(*value)) {
    if (item->kind == ValueKind::text)
      read.push_back(item->text);
    else
      wrong_type(key, *item, "string");
  }
  out = std::move(read);
}

void KeyReader::read_table(const Value& value, const std::string& path, const Keys& keys) {
  KeyReader reader(value, path, state_);
  keys(reader);
  reader.refuse_unknown_keys();
}

void KeyReader::table(const Key& key, const Keys& keys) {
  static const Value nothing;  // a table that is not given still gets its derived defaults
  const Value* value = take(key);
  if (value != nullptr && value->kind != ValueKind::table) {
    wrong_type(key, *value, "table");
    value = nullptr;
  }
  read_table(value != nullptr ? *value : nothing, path_of(key.name), keys);
}

void KeyReader::optional_table(const Key& key, bool& present, const Keys& keys) {
  const Value* value = take(key);
  if (value == nullptr) return;
  if (value->kind != ValueKind::table) return wrong_type(key, *value, "table");
  present = true;
  read_table(*value, path_of(key.name), keys);
}

void KeyReader::load_entry(const Value& name, const NamedEntries& entries, const std::string& path) {
  if (std::find(entries.names.begin(), entries.names.end(), name.text) == entries.names.end()) {
    state_.positions.add_failed(path);
    state_.diagnostics.add(diagnostic_at(name.span, fmt::format("unknown {} {}", entries.kind, shown(name)),
                                         suggestion(name.text, entries.names)));
    return;
  }
  const Diagnostics loaded = entries.load(name.text);
  for (const Diagnostic& found : loaded.entries()) {
    Diagnostic placed = diagnostic_at(name.span, found.message, found.remedy);
    placed.severity = found.severity;
    state_.diagnostics.add(std::move(placed));
  }
}

void KeyReader::read_named_table(const Key& key, const Value* value, const NamedEntries& entries,
                                 const Keys& keys) {
  static const Value nothing;
  if (value != nullptr && value->kind == ValueKind::text) {
    load_entry(*value, entries, path_of(key.name));
    value = nullptr;
  } else if (value != nullptr && value->kind != ValueKind::table) {
    wrong_type(key, *value, fmt::format("the name of a {} or a table", entries.kind));
    state_.positions.add_failed(path_of(key.name));
    value = nullptr;
  }
  KeyReader reader(value != nullptr ? *value : nothing, path_of(key.name), state_);
  const Key preset_key{.name = "preset", .meaning = {}};
  if (const Value* preset = reader.take(preset_key)) {
    if (preset->kind == ValueKind::text)
      load_entry(*preset, entries, path_of(key.name));
    else {
      reader.wrong_type(preset_key, *preset, fmt::format("the name of a {}", entries.kind));
      state_.positions.add_failed(path_of(key.name));
    }
  }
  keys(reader);
  reader.refuse_unknown_keys();
}

void KeyReader::named_table(const Key& key, const NamedEntries& entries, const Keys& keys) {
  read_named_table(key, take(key), entries, keys);
}

void KeyReader::optional_named_table(const Key& key, bool& present, const NamedEntries& entries,
                                     const Keys& keys) {
  const Value* value = take(key);
  if (value == nullptr) return;
  present = true;
  read_named_table(key, value, entries, keys);
}

void KeyReader::table_list(const Key& key, std::size_t /*size*/,
                           const std::function<void(std::size_t)>& resize,
                           const std::function<void(KeyVisitor&, std::size_t)>& keys) {
  const Value* value = take(key);
  if (value == nullptr) return;
  if (value->kind != ValueKind::array) return wrong_type(key, *value, "array of tables");
  resize(0);  // what a preset held is replaced, not merged
  std::size_t count = 0;
  for (std::size_t i = 0; i < value->elements.size(); ++i) {
    const Value& element = value->elements[i];
    if (element.kind != ValueKind::table) {
      wrong_type(key, element, "table");
      continue;
    }
    resize(++count);
    const std::string path = fmt::format("{}.{}", path_of(key.name), i);
    state_.positions.add(path, element.span);
    read_table(element, path, [&](KeyVisitor& visitor) { keys(visitor, count - 1); });
  }
}

}  // namespace specs
