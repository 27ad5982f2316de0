#include "specs/language/value_tree.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <sstream>

#include <fmt/format.h>

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

namespace specs {

namespace {

std::shared_ptr<const SourceText> split_lines(std::string_view text, const std::string& file_name) {
  auto source = std::make_shared<SourceText>();
  source->file = file_name;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    if (line.ends_with('\r')) line.remove_suffix(1);
    source->lines.emplace_back(line);
    begin = end + 1;
  }
  return source;
}

/// Turns toml++ nodes into values; `column_shift` moves the columns of a fragment to where it stands in the
/// text.
class Converter {
 public:
  Converter(std::shared_ptr<const SourceText> text, int column_shift)
      : text_(std::move(text)), column_shift_(column_shift) {}

  SourceSpan span(const toml::source_region& region) const {
    SourceSpan span;
    span.text = text_;
    span.line = static_cast<int>(region.begin.line);
    span.column = static_cast<int>(region.begin.column) + column_shift_;
    if (region.end.line == region.begin.line && region.end.column > region.begin.column)
      span.length = static_cast<int>(region.end.column - region.begin.column);
    return span;
  }

  Value convert(const toml::node& node) const {
    Value value;
    value.span = span(node.source());
    if (const auto* table = node.as_table()) {
      value.kind = ValueKind::table;
      for (const auto& [key, child] : *table)
        value.entries.push_back({std::string(key.str()), span(key.source()), convert(child)});
      // toml++ keeps keys sorted by name; readers expect the order of the text.
      std::stable_sort(value.entries.begin(), value.entries.end(), [](const auto& a, const auto& b) {
        return std::pair(a.key_span.line, a.key_span.column) < std::pair(b.key_span.line, b.key_span.column);
      });
    } else if (const auto* array = node.as_array()) {
      value.kind = ValueKind::array;
      for (const toml::node& child : *array) value.elements.push_back(convert(child));
    } else if (const auto* text = node.as_string()) {
      value.kind = ValueKind::text;
      value.text = text->get();
    } else if (const auto* integer = node.as_integer()) {
      value.kind = ValueKind::integer;
      value.integer = integer->get();
    } else if (const auto* number = node.as_floating_point()) {
      value.kind = ValueKind::number;
      value.number = number->get();
    } else if (const auto* boolean = node.as_boolean()) {
      value.kind = ValueKind::boolean;
      value.boolean = boolean->get();
    } else {
      value.kind = ValueKind::date;
      std::ostringstream written;
      node.visit([&written](const auto& visited) {
        if constexpr (toml::is_chronological<decltype(visited)>) written << visited.get();
      });
      value.text = written.str();
    }
    return value;
  }

 private:
  std::shared_ptr<const SourceText> text_;
  int column_shift_;
};

int code_points(std::string_view text) {
  return static_cast<int>(
      std::count_if(text.begin(), text.end(), [](char byte) { return (byte & 0xC0) != 0x80; }));
}

Diagnostic syntax_error(const Converter& converter, const toml::parse_error& error) {
  return diagnostic_at(converter.span(error.source()), fmt::format("not TOML: {}", error.description()));
}

std::string number_text(double number) {
  std::string text = fmt::format("{}", number);
  const bool plain_integer = text.find_first_not_of("-0123456789") == std::string::npos;
  return plain_integer ? text + ".0" : text;
}

constexpr std::size_t longest_shown = 60;

}  // namespace

Diagnostic diagnostic_at(const SourceSpan& span, std::string message, std::string remedy) {
  Diagnostic diagnostic;
  diagnostic.message = std::move(message);
  diagnostic.remedy = std::move(remedy);
  if (!span.text) return diagnostic;
  diagnostic.position = {span.text->file, span.line, span.column};
  diagnostic.caret_length = span.length;
  if (span.line >= 1 && static_cast<std::size_t>(span.line) <= span.text->lines.size())
    diagnostic.source_line = span.text->lines[static_cast<std::size_t>(span.line) - 1];
  return diagnostic;
}

const TableEntry* Value::find(std::string_view key) const {
  for (const TableEntry& entry : entries)
    if (entry.key == key) return &entry;
  return nullptr;
}

TableEntry* Value::find(std::string_view key) {
  for (TableEntry& entry : entries)
    if (entry.key == key) return &entry;
  return nullptr;
}

std::string_view kind_name(ValueKind kind) {
  switch (kind) {
    case ValueKind::boolean:
      return "boolean";
    case ValueKind::integer:
      return "integer";
    case ValueKind::number:
      return "float";
    case ValueKind::text:
      return "string";
    case ValueKind::date:
      return "date";
    case ValueKind::array:
      return "array";
    case ValueKind::table:
      return "table";
  }
  return "value";
}

std::string toml_string(std::string_view text) {
  std::string out = "\"";
  for (const char character : text) {
    const auto byte = static_cast<unsigned char>(character);
    if (character == '"' || character == '\\') {
      out += '\\';
      out += character;
    } else if (byte < 0x20 || byte == 0x7F) {
      out += fmt::format("\\u{:04X}", byte);
    } else {
      out += character;
    }
  }
  return out + '"';
}

std::string to_toml(const Value& value) {
  std::string out;
  switch (value.kind) {
    case ValueKind::boolean:
      return value.boolean ? "true" : "false";
    case ValueKind::integer:
      return fmt::format("{}", value.integer);
    case ValueKind::number:
      return number_text(value.number);
    case ValueKind::text:
      return toml_string(value.text);
    case ValueKind::date:
      return value.text;
    case ValueKind::array:
      for (const Value& element : value.elements) out += (out.empty() ? "" : ", ") + to_toml(element);
      return "[" + out + "]";
    case ValueKind::table:
      for (const TableEntry& entry : value.entries)
        out +=
            fmt::format("{}{} = {}", out.empty() ? "" : ", ", toml_string(entry.key), to_toml(entry.value));
      return "{ " + out + " }";
  }
  return out;
}

std::string shown(const Value& value) {
  if (value.kind == ValueKind::table) return "a table";
  std::string text = to_toml(value);
  if (text.size() <= longest_shown) return text;
  std::size_t end = longest_shown;
  while (end > 0 && (text[end] & 0xC0) == 0x80) --end;  // never inside a code point
  return text.substr(0, end) + "…";
}

namespace {

/// Parts of one dotted key; nested values are limited by toml++ itself.
constexpr int most_key_parts = 128;

/// Where a key of too many parts begins: a table is nested as deep as its key is long, and both toml++ and
/// what reads its tables go down by recursion. Text in quotes and comments is passed over.
std::optional<std::size_t> too_long_key(std::string_view text) {
  std::size_t begin = 0;
  int dots = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char character = text[at];
    if (character == '#') {
      at = std::min(text.find('\n', at), text.size());
      dots = 0;
    } else if (character == '"' || character == '\'') {
      const std::string_view triple = character == '"' ? R"(""")" : "'''";
      const bool several_lines = text.substr(at).starts_with(triple);
      const std::string_view closing = several_lines ? triple : triple.substr(0, 1);
      at += closing.size();
      while (at < text.size() && !text.substr(at).starts_with(closing) && (several_lines || text[at] != '\n'))
        at += character == '"' && text[at] == '\\' ? 2 : 1;
      at += closing.size() - 1;
    } else if (character == '.') {
      if (++dots == most_key_parts) return begin;
    } else if (character != ' ' && character != '\t' && character != '_' && character != '-' &&
               std::isalnum(static_cast<unsigned char>(character)) == 0) {
      dots = 0;
      begin = at + 1;
    }
  }
  return std::nullopt;
}

Diagnostic too_long_key_at(std::string_view text, std::size_t offset,
                           const std::shared_ptr<const SourceText>& lines) {
  const std::string_view before = text.substr(0, offset);
  const auto line = static_cast<int>(std::count(before.begin(), before.end(), '\n')) + 1;
  const std::size_t start = before.rfind('\n') + 1;  // npos + 1 = 0
  return diagnostic_at({lines, line, code_points(before.substr(start)) + 1, 1},
                       fmt::format("a key of more than {} parts", most_key_parts));
}

}  // namespace

Result<Value> parse_toml(std::string_view text, const std::string& file_name) {
  Result<Value> result;
  const auto lines = split_lines(text, file_name);
  if (const auto offset = too_long_key(text)) {
    result.diagnostics.add(too_long_key_at(text, *offset, lines));
    return result;
  }
  const Converter converter(lines, 0);
  const toml::parse_result parsed = toml::parse(text);
  if (parsed)
    result.value = converter.convert(parsed.table());
  else
    result.diagnostics.add(syntax_error(converter, parsed.error()));
  return result;
}

Result<Value> parse_toml_value(const std::shared_ptr<const SourceText>& text, std::size_t value_offset) {
  Result<Value> result;
  const std::string& line = text->lines.front();
  const std::string written = line.substr(value_offset);
  constexpr std::string_view prefix = "v=";
  const int shift =
      code_points(std::string_view(line).substr(0, value_offset)) - static_cast<int>(prefix.size());
  const Converter converter(text, shift);

  const std::string document = std::string(prefix) + written;
  const toml::parse_result parsed = toml::parse(std::string_view(document));
  const bool one_value = parsed && parsed.table().size() == 1;
  if (one_value) {
    result.value = converter.convert(*parsed.table().get("v"));
    return result;
  }
  const std::size_t first = written.find_first_not_of(" \t");
  const bool looks_like_toml =
      first == std::string::npos || std::string_view("[{\"'").find(written[first]) != std::string_view::npos;
  if (looks_like_toml && !parsed) {
    result.diagnostics.add(syntax_error(converter, parsed.error()));
    return result;
  }
  Value bare;
  bare.kind = ValueKind::text;
  bare.text = written;
  bare.span.text = text;
  bare.span.line = 1;
  bare.span.column = shift + static_cast<int>(prefix.size()) + 1;
  bare.span.length = std::max(1, code_points(written));
  result.value = std::move(bare);
  return result;
}

}  // namespace specs
