#include "specs/language/probe.h"

#include <cstdlib>

#include <fmt/format.h>

#include "specs/language/key_reader.h"
#include "specs/language/key_writer.h"
#include "specs/language/section_keys.h"
#include "specs/language/text_file.h"
#include "specs/language/value_tree.h"

namespace specs {

std::filesystem::path default_probe_path() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache == '/') return std::filesystem::path(cache) / "dsplan" / "localhost.toml";
  const char* home = std::getenv("HOME");
  if (home != nullptr && *home != '\0')
    return std::filesystem::path(home) / ".cache" / "dsplan" / "localhost.toml";
  return {};
}

std::string write_probe_text(const LocalhostProbe& probe) {
  LocalhostProbe copy = probe;
  KeyWriter writer;
  visit_keys(writer, copy);
  return "# What `dsrun --probe` measured on this machine. Delete this file to forget it.\n" + writer.text();
}

Diagnostics write_probe(const LocalhostProbe& probe, const std::filesystem::path& path) {
  return write_text_file(path, write_probe_text(probe));
}

Result<LocalhostProbe> read_probe(const std::filesystem::path& path) {
  Result<LocalhostProbe> result;
  const Result<std::string> text = read_text_file(path);
  if (!text) {
    result.diagnostics = text.diagnostics;
    return result;
  }
  const Result<Value> document = parse_toml(*text, path.string());
  if (!document) {
    result.diagnostics = document.diagnostics;
    return result;
  }
  LocalhostProbe probe;
  ReadState state;
  state.positions.add("", document->span);
  KeyReader reader(*document, "", state);
  visit_keys(reader, probe);
  reader.refuse_unknown_keys();
  if (probe.format_version != probe_format_version)
    state.diagnostics.add(diagnostic_at(state.positions.find({"format_version"}),
                                        fmt::format("format_version {} is not {}, which this program reads",
                                                    probe.format_version, probe_format_version),
                                        "measure again with `dsrun --probe`"));
  state.diagnostics.sort_by_position();
  result.diagnostics = std::move(state.diagnostics);
  if (!result.diagnostics.has_errors()) result.value = std::move(probe);
  return result;
}

}  // namespace specs
