#include "cli/dsplan/output/json.h"

#include <nlohmann/json.hpp>

namespace cli {
namespace {

using nlohmann::ordered_json;

ordered_json to_json(const planner::Cell& cell) {
  return std::visit(
      [](const auto& value) -> ordered_json {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::monostate>)
          return nullptr;
        else
          return value;
      },
      cell);
}

ordered_json to_json(const planner::Facts& facts) {
  ordered_json json = ordered_json::object();
  for (const auto& fact : facts.facts) {
    json[fact.key] = to_json(fact.value);
    if (!fact.note.empty()) json[fact.key + "_note"] = fact.note;
  }
  return json;
}

ordered_json to_json(const planner::Table& table) {
  ordered_json json = ordered_json::array();
  for (const auto& row : table.rows) {
    ordered_json object = ordered_json::object();
    for (std::size_t column = 0; column < row.size(); ++column)
      object[table.columns[column].key] = to_json(row[column]);
    json.push_back(std::move(object));
  }
  return json;
}

ordered_json to_json(const planner::Notes& notes) { return notes.lines; }

}  // namespace

ordered_json to_json(const planner::Report& report) {
  ordered_json json = ordered_json::object();
  for (const auto& section : report.sections)
    std::visit(
        [&](const auto& content) {
          // Facts without a key of their own stand at the top.
          if (content.key.empty())
            json.update(to_json(content));
          else
            json[content.key] = to_json(content);
        },
        section);
  return json;
}

}  // namespace cli
