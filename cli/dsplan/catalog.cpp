#include "specs/language/catalog.h"

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/dsplan/arguments.h"
#include "cli/dsplan/print_report.h"
#include "cli/dsplan/verbs.h"
#include "cli/exit_codes.h"
#include "specs/language/catalog_text.h"

namespace cli {

namespace {

struct Options {
  std::string kind;
  std::string name;
  OutputFormat format = OutputFormat::text;
};

/// Sources are long; people see them with a single entry.
planner::Table table_of(specs::CatalogKind kind, OutputFormat format) {
  planner::Table table;
  table.key = std::string(specs::name_of(kind));
  table.title = std::string(specs::name_of(kind));
  table.columns = {{"name", "name"}, {"description", "what it is"}};
  if (format == OutputFormat::json) table.columns.push_back({"source", "source"});
  for (const specs::CatalogEntry& entry : specs::catalog_entries(kind)) {
    table.rows.push_back({entry.name, entry.description});
    if (format == OutputFormat::json) table.rows.back().emplace_back(entry.source);
  }
  return table;
}

int list_entries(const Options& options) {
  planner::Report report;
  for (const auto& [kind, name] : specs::EnumNames<specs::CatalogKind>::names)
    if (options.kind.empty() || options.kind == name)
      report.sections.emplace_back(table_of(kind, options.format));
  print_report(report, options.format);
  return exit_done;
}

int show_entry(const Options& options) {
  const auto text =
      specs::catalog_entry_toml(*specs::from_name<specs::CatalogKind>(options.kind), options.name);
  print_diagnostics(text.diagnostics);
  if (!text) return exit_bad_input;
  std::fputs(text->c_str(), stdout);
  return exit_done;
}

}  // namespace

void add_catalog(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<Options>();
  CLI::App* verb =
      app.add_subcommand("catalog", "List what experiments can name, or print one entry as TOML");
  verb->add_option("KIND", options->kind, "device, node, network, storage, model or stack")
      ->check(CLI::IsMember(specs::all_names<specs::CatalogKind>()));
  verb->add_option("NAME", options->name, "Print this entry with all its values");
  add_format_argument(*verb, options->format);
  verb->callback([options, &exit_code] {
    exit_code = options->name.empty() ? list_entries(*options) : show_entry(*options);
  });
}

}  // namespace cli
