// docs/plan-format.md lists every key of the published schema.

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace specs {
namespace {

using nlohmann::ordered_json;

constexpr const char* page_path = "docs/plan-format.md";
constexpr const char* mark = "<!-- keys: written by this page's test -->\n";

std::string read_file(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string choices(const ordered_json& names) {
  constexpr std::size_t most = 8;
  std::string text = "one of";
  for (std::size_t index = 0; index < names.size() && index < most; ++index) {
    const std::string name = names[index].get<std::string>();
    text += (index == 0 ? " " : ", ") + (name.empty() ? std::string("\"\"") : name);
  }
  return names.size() > most ? text + " …" : text;
}

std::string limits(const ordered_json& schema) {
  std::string text;
  const auto add = [&](const char* key, const char* words) {
    // Limits that only keep numbers within 64 bits say nothing about the field.
    if (!schema.contains(key) || schema[key] == (std::int64_t{1} << 50) ||
        schema[key] == -(std::int64_t{1} << 50))
      return;
    text += fmt::format(" {} {}", words, schema[key].dump());
  };
  add("minimum", "≥");
  add("exclusiveMinimum", ">");
  add("maximum", "≤");
  add("exclusiveMaximum", "<");
  return text;
}

/// The tables of one object and of those in it.
class Page {
 public:
  std::string tables_of(const ordered_json& schema, const std::string& path) {
    seen_[schema["properties"].dump()] = path;
    std::string rows;
    std::string below;
    const ordered_json required = schema.value("required", ordered_json::array());
    for (const auto& [name, property] : schema["properties"].items()) {
      const bool optional = std::find(required.begin(), required.end(), name) == required.end();
      rows += fmt::format("| `{}` | {}{} | {} |\n", name, type_of(property, path + "/" + name, below),
                          optional ? ", may be absent" : "", property["description"].get<std::string>());
    }
    return fmt::format("### `{}`\n\n| key | type | meaning |\n|---|---|---|\n{}\n", path.empty() ? "/" : path,
                       rows) +
           below;
  }

 private:
  std::string type_of(const ordered_json& schema, const std::string& path, std::string& below) {
    if (schema.contains("enum")) return choices(schema["enum"]);
    const std::string type = schema["type"].get<std::string>();
    if (type == "array") return "list: " + type_of(schema["items"], path + "/*", below);
    if (type != "object") return type + limits(schema);
    if (!schema.contains("properties")) return "object of numbers";
    const auto known = seen_.find(schema["properties"].dump());
    if (known != seen_.end()) return fmt::format("object as `{}`", known->second);
    below += tables_of(schema, path);
    return fmt::format("object, see `{}`", path);
  }

  std::map<std::string, std::string> seen_;
};

/// A key that changed is documented by running this test with UPDATE_GOLDEN=1.
TEST(PlanFormatPage, ListsEveryKeyOfTheSchema) {
  const std::string page = read_file(page_path);
  const std::size_t at = page.find(mark);
  ASSERT_NE(at, std::string::npos);
  const std::string head = page.substr(0, at) + mark + "\n";
  std::string tables = Page().tables_of(ordered_json::parse(read_file("specs/plan/plan.schema.json")), "");
  tables.pop_back();
  if (std::getenv("UPDATE_GOLDEN") != nullptr) std::ofstream(page_path) << head + tables;
  EXPECT_EQ(head + tables, read_file(page_path));
}

}  // namespace
}  // namespace specs
