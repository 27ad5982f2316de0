// dsplan catalog [KIND [NAME]]: what experiments can name.
#include "specs/language/catalog.h"

#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/dsplan/inputs.h"
#include "cli/dsplan/verbs/verbs.h"
#include "specs/language/catalog_text.h"

namespace cli {
namespace {

struct CatalogOptions {
  std::string kind;
  std::string name;
};

/// Sources are long; people see them with a single entry.
planner::Table table_of(specs::CatalogKind kind, bool with_sources) {
  planner::Table table;
  table.key = std::string(specs::name_of(kind));
  table.title = std::string(specs::name_of(kind));
  table.columns = {{"name", "name"}, {"description", "what it is"}};
  if (with_sources) table.columns.push_back({"source", "source"});
  for (const specs::CatalogEntry& entry : specs::catalog_entries(kind)) {
    table.rows.push_back({entry.name, entry.description});
    if (with_sources) table.rows.back().emplace_back(entry.source);
  }
  return table;
}

void list_entries(const CatalogOptions& options, Invocation& invocation) {
  planner::Report report;
  for (const auto& [kind, name] : specs::EnumNames<specs::CatalogKind>::names)
    if (options.kind.empty() || options.kind == name)
      report.sections.emplace_back(table_of(kind, invocation.json));
  invocation.print(report);
}

bool show_entry(const CatalogOptions& options, Invocation& invocation) {
  const auto text =
      specs::catalog_entry_toml(*specs::from_name<specs::CatalogKind>(options.kind), options.name);
  if (!text) return invocation.refuse(text.diagnostics);
  invocation.print(text.diagnostics);
  if (invocation.json)
    invocation.out << nlohmann::ordered_json{{"name", options.name}, {"toml", *text}}.dump(2) << '\n';
  else
    invocation.out << *text;
  return true;
}

}  // namespace

void add_catalog_verb(CLI::App& app, Invocation& invocation) {
  CLI::App* verb =
      app.add_subcommand("catalog", "List what experiments can name, or print one entry as TOML");
  auto options = std::make_shared<CatalogOptions>();
  verb->add_option("KIND", options->kind, "device, node, network, storage, model or stack")
      ->check(CLI::IsMember(specs::all_names<specs::CatalogKind>()));
  verb->add_option("NAME", options->name, "Print this entry with all its values");
  add_format_option(*verb, invocation);
  verb->callback([options, &invocation] {
    if (options->name.empty())
      list_entries(*options, invocation);
    else
      show_entry(*options, invocation);
  });
}

}  // namespace cli
