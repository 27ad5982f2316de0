#include "specs/language/catalog_text.h"

#include <fmt/format.h>

#include "specs/language/key_writer.h"
#include "specs/language/section_keys.h"

namespace specs {

namespace {

template <class Spec>
Result<std::string> text_of(Result<Spec> spec, const std::string& path) {
  Result<std::string> result;
  result.diagnostics = spec.diagnostics;
  if (!spec) return result;
  KeyWriter writer(path);
  visit_keys(writer, *spec);
  result.value = path.empty() ? writer.text() : fmt::format("[{}]\n{}", path, writer.text());
  return result;
}

Result<std::string> values_of(CatalogKind kind, std::string_view name) {
  switch (kind) {
    case CatalogKind::device:
      return text_of(catalog_device(name), "cluster.node.device");
    case CatalogKind::node:
      return text_of(catalog_node(name), "cluster.node");
    case CatalogKind::network:
      return text_of(catalog_network(name), "cluster.network");
    case CatalogKind::storage:
      return text_of(catalog_storage(name), "cluster.storage");
    case CatalogKind::model:
      return text_of(catalog_model(name), "model");
    case CatalogKind::stack:
      return text_of(catalog_stack(name), "");
  }
  return {};
}

}  // namespace

Result<std::string> catalog_entry_toml(CatalogKind kind, std::string_view name) {
  Result<std::string> text = values_of(kind, name);
  if (!text) return text;
  for (const CatalogEntry& entry : catalog_entries(kind))
    if (entry.name == name)
      text.value = fmt::format("# {} {}: {}\n# source: {}\n{}", name_of(kind), entry.name, entry.description,
                               entry.source, *text);
  return text;
}

}  // namespace specs
