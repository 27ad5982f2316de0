#include "specs/diagnostics/diagnostic.h"

#include <algorithm>
#include <iterator>
#include <tuple>

#include <fmt/format.h>

#include "specs/diagnostics/source_excerpt.h"

namespace specs {

namespace {

std::string_view severity_name(Severity severity) {
  switch (severity) {
    case Severity::error:
      return "error";
    case Severity::warning:
      return "warning";
    case Severity::note:
      return "note";
  }
  return "error";
}

std::string position_prefix(const SourcePosition& position) {
  std::string prefix = printable(position.file);
  if (position.line > 0) {
    prefix += fmt::format(":{}", position.line);
    if (position.column > 0) prefix += fmt::format(":{}", position.column);
  }
  if (!prefix.empty()) prefix += ": ";
  return prefix;
}

}  // namespace

std::string render(const Diagnostic& diagnostic) {
  std::string text = fmt::format("{}{}: {}\n", position_prefix(diagnostic.position),
                                 severity_name(diagnostic.severity), printable(diagnostic.message));
  if (!diagnostic.source_line.empty() && diagnostic.position.column > 0) {
    const SourceExcerpt excerpt =
        source_excerpt(diagnostic.source_line, diagnostic.position.column, diagnostic.caret_length);
    text +=
        fmt::format("{:>5} | {}\n{:>5} | {}\n", diagnostic.position.line, excerpt.line, "", excerpt.caret);
  }
  const auto detail = [&text](std::string_view label, const std::string& value) {
    if (!value.empty()) text += fmt::format("  {}: {}\n", label, printable(value));
  };
  detail("expected", diagnostic.expected);
  detail("saw", diagnostic.seen);
  detail("remedy", diagnostic.remedy);
  return text;
}

void Diagnostics::error(SourcePosition position, std::string message, std::string remedy) {
  Diagnostic diagnostic;
  diagnostic.position = std::move(position);
  diagnostic.message = std::move(message);
  diagnostic.remedy = std::move(remedy);
  add(std::move(diagnostic));
}

void Diagnostics::warning(SourcePosition position, std::string message, std::string remedy) {
  error(std::move(position), std::move(message), std::move(remedy));
  entries_.back().severity = Severity::warning;
}

void Diagnostics::append(const Diagnostics& other) {
  entries_.insert(entries_.end(), other.entries_.begin(), other.entries_.end());
}

void Diagnostics::sort_by_position() {
  std::stable_sort(entries_.begin(), entries_.end(), [](const Diagnostic& a, const Diagnostic& b) {
    return std::tie(a.position.file, a.position.line, a.position.column) <
           std::tie(b.position.file, b.position.line, b.position.column);
  });
}

bool Diagnostics::has_errors() const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [](const Diagnostic& entry) { return entry.severity == Severity::error; });
}

std::string Diagnostics::render() const {
  std::string text;
  for (const Diagnostic& entry : entries_) text += specs::render(entry);
  return text;
}

}  // namespace specs
