#include "cost_models/constants.h"

#include <stdexcept>

#include "cost_models/embedded_constants.h"
#include "specs/language/value_tree.h"

namespace cost_models {
namespace {

double number_of(const specs::Value& value) {
  return value.kind == specs::ValueKind::integer ? static_cast<double>(value.integer) : value.number;
}

double number_at(const specs::Value& table, std::string_view key, double fallback) {
  const specs::TableEntry* entry = table.find(key);
  return entry == nullptr ? fallback : number_of(entry->value);
}

void collect(const specs::Value& table, const std::string& path, std::vector<Constant>& constants) {
  if (const specs::TableEntry* value = table.find("value")) {
    Constant constant;
    constant.name = path;
    constant.value = number_of(value->value);
    constant.prior = number_at(table, "prior", constant.value);
    constant.spread = number_at(table, "spread", 0);
    if (const specs::TableEntry* meaning = table.find("meaning")) constant.meaning = meaning->value.text;
    constants.push_back(std::move(constant));
    return;
  }
  for (const specs::TableEntry& entry : table.entries)
    if (entry.value.kind == specs::ValueKind::table)
      collect(entry.value, path.empty() ? entry.key : path + "." + entry.key, constants);
}

}  // namespace

ConstantTable ConstantTable::parse(std::string_view text) {
  ConstantTable table;
  table.add(text);
  return table;
}

void ConstantTable::add(std::string_view text) {
  const auto tree = specs::parse_toml(text, "constants");
  if (!tree) throw std::runtime_error("constants of the cost models: " + tree.diagnostics.render());
  collect(*tree, "", constants_);
  for (std::size_t i = 0; i < constants_.size(); ++i) by_name_[constants_[i].name] = i;
}

const ConstantTable& ConstantTable::built_in() {
  static const ConstantTable table = [] {
    ConstantTable all;
    for (const specs::EmbeddedFile& file : embedded_constants()) all.add(file.text);
    return all;
  }();
  return table;
}

std::size_t ConstantTable::index(std::string_view name) const {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) throw std::runtime_error("no constant named " + std::string(name));
  return found->second;
}

bool ConstantTable::contains(std::string_view name) const { return by_name_.contains(name); }

double ConstantTable::value_or(std::string_view name, double fallback) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? fallback : constants_[found->second].value;
}

}  // namespace cost_models
