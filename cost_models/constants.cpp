#include "cost_models/constants.h"

#include <stdexcept>

#include <toml++/toml.h>

#include "cost_models/embedded_constants.h"

namespace cost_models {
namespace {

void collect(const toml::table& table, const std::string& path, std::vector<Constant>& constants) {
  if (const auto value = table["value"].value<double>()) {
    Constant constant;
    constant.name = path;
    constant.value = *value;
    constant.prior = table["prior"].value_or(*value);
    constant.spread = table["spread"].value_or(0.0);
    constant.meaning = table["meaning"].value_or(std::string{});
    constants.push_back(std::move(constant));
    return;
  }
  for (const auto& [key, node] : table)
    if (const toml::table* child = node.as_table())
      collect(*child, path.empty() ? std::string(key.str()) : path + "." + std::string(key.str()), constants);
}

}  // namespace

ConstantTable ConstantTable::parse(std::string_view text) {
  ConstantTable table;
  table.add(text);
  return table;
}

void ConstantTable::add(std::string_view text) {
  try {
    collect(toml::parse(text), "", constants_);
  } catch (const toml::parse_error& error) {
    throw std::runtime_error("constants of the cost models: " + std::string(error.description()));
  }
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
  const auto found = by_name_.find(std::string(name));
  if (found == by_name_.end()) throw std::runtime_error("no constant named " + std::string(name));
  return found->second;
}

bool ConstantTable::contains(std::string_view name) const { return by_name_.contains(std::string(name)); }

double ConstantTable::value_or(std::string_view name, double fallback) const {
  const auto found = by_name_.find(std::string(name));
  return found == by_name_.end() ? fallback : constants_[found->second].value;
}

}  // namespace cost_models
