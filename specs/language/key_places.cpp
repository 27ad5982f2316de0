#include "specs/language/key_places.h"

#include <utility>

#include <fmt/format.h>

#include "specs/language/overrides.h"
#include "specs/language/text_file.h"

namespace specs {

KeyPlaces::KeyPlaces(const Value& document) { add(document, ""); }

void KeyPlaces::add(const Value& table, const std::string& prefix) {
  for (const TableEntry& entry : table.entries) {
    const std::string path = prefix + entry.key;
    const bool is_table = entry.value.kind == ValueKind::table;
    spans_.emplace(path, is_table ? entry.key_span : entry.value.span);
    if (is_table) add(entry.value, path + ".");
  }
}

std::string KeyPlaces::words(const std::string& path) const {
  const auto found = spans_.find(path);
  if (found == spans_.end() || !found->second.text) return {};
  const SourceSpan& span = found->second;
  return fmt::format("{}:{}:{}", span.text->file, span.line, span.column);
}

Diagnostics KeyPlaces::located(const Diagnostics& diagnostics) const {
  Diagnostics located;
  for (const Diagnostic& entry : diagnostics.entries()) {
    const auto found = spans_.find(entry.message.substr(0, entry.message.find_first_of(": ")));
    if (entry.position.line != 0 || found == spans_.end()) {
      located.add(entry);
      continue;
    }
    Diagnostic placed = diagnostic_at(found->second, entry.message, entry.remedy);
    placed.severity = entry.severity;
    placed.expected = entry.expected;
    placed.seen = entry.seen;
    located.add(std::move(placed));
  }
  return located;
}

KeyPlaces read_key_places(const std::filesystem::path& path, const std::vector<std::string>& overrides) {
  const Result<std::string> text = read_text_file(path);
  if (!text) return {};
  Result<Value> document = parse_toml(*text, path.string());
  if (!document || apply_overrides(*document, overrides).has_errors()) return {};
  return KeyPlaces(*document);
}

}  // namespace specs
