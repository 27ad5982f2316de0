#include "specs/language/overrides.h"

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>

#include <fmt/format.h>

namespace specs {

namespace {

std::optional<std::size_t> element_index(const std::string& text) {
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  return whole ? std::optional(index) : std::nullopt;
}

/// The value below `parent` that a part of a path names, made where a table lacks it; null with a diagnostic
/// where there can be none.
Value* step_into(Value& parent, const PathSegment& segment, Diagnostics& diagnostics) {
  if (parent.kind == ValueKind::text) {
    Value table;
    table.span = parent.span;
    table.entries.push_back({"preset", parent.span, std::move(parent)});
    parent = std::move(table);
  }
  if (parent.kind == ValueKind::table) {
    if (TableEntry* entry = parent.find(segment.name)) return &entry->value;
    Value added;
    added.span = segment.span;
    parent.entries.push_back({segment.name, segment.span, std::move(added)});
    return &parent.entries.back().value;
  }
  if (parent.kind == ValueKind::array) {
    const auto index = element_index(segment.name);
    if (index && *index < parent.elements.size()) return &parent.elements[*index];
    diagnostics.add(diagnostic_at(
        segment.span,
        fmt::format("\"{}\" picks no element of an array of {}", segment.name, parent.elements.size()),
        "elements count from 0"));
    return nullptr;
  }
  diagnostics.add(
      diagnostic_at(segment.span, fmt::format("\"{}\" would be a key of {} {}, which has none", segment.name,
                                              kind_name(parent.kind), shown(parent))));
  return nullptr;
}

int code_points(std::string_view text) {
  return static_cast<int>(
      std::count_if(text.begin(), text.end(), [](char byte) { return (byte & 0xC0) != 0x80; }));
}

void apply_override(Value& document, const std::string& override_text, Diagnostics& diagnostics) {
  auto text = std::make_shared<SourceText>();
  text->file = "--set";
  text->lines.push_back(override_text);
  SourceSpan span;
  span.text = text;
  span.line = 1;
  span.column = 1;
  span.length = std::max(1, code_points(override_text));

  const std::size_t equals = override_text.find('=');
  if (equals == std::string::npos) {
    diagnostics.add(diagnostic_at(span, fmt::format("expected path=value, saw \"{}\"", override_text),
                                  "for example training.global_batch=256"));
    return;
  }
  span.length = std::max(1, code_points(std::string_view(override_text).substr(0, equals)));
  const auto path = split_path(override_text.substr(0, equals), span);
  diagnostics.append(path.diagnostics);
  auto value = parse_toml_value(text, equals + 1);
  diagnostics.append(value.diagnostics);
  if (path && value) diagnostics.append(set_value(document, *path, std::move(*value)));
}

}  // namespace

Result<std::vector<PathSegment>> split_path(const std::string& path, const SourceSpan& span) {
  Result<std::vector<PathSegment>> result;
  std::vector<PathSegment> segments;
  constexpr std::ptrdiff_t most_dots = 128;  // a table is nested for each
  if (std::count(path.begin(), path.end(), '.') > most_dots) {
    result.diagnostics.add(
        diagnostic_at(span, "no key has so many parts", "for example training.global_batch"));
    return result;
  }
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    PathSegment segment{path.substr(begin, end - begin), span};
    if (segment.name.empty()) {
      result.diagnostics.add(diagnostic_at(span, fmt::format("\"{}\" is no path of a key", path),
                                           "for example training.global_batch"));
      return result;
    }
    segments.push_back(std::move(segment));
    begin = end + 1;
  }
  result.value = std::move(segments);
  return result;
}

Diagnostics set_value(Value& document, const std::vector<PathSegment>& path, Value value) {
  Diagnostics diagnostics;
  Value* target = &document;
  for (const PathSegment& segment : path) {
    target = step_into(*target, segment, diagnostics);
    if (target == nullptr) return diagnostics;
  }
  *target = std::move(value);
  return diagnostics;
}

Diagnostics apply_overrides(Value& document, const std::vector<std::string>& overrides) {
  Diagnostics diagnostics;
  for (const std::string& override_text : overrides) apply_override(document, override_text, diagnostics);
  return diagnostics;
}

}  // namespace specs
