// A TOML text as a tree of values, each of which knows where it stands.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "specs/diagnostics/diagnostic.h"

namespace specs {

/// A text that messages quote from.
struct SourceText {
  std::string file;
  std::vector<std::string> lines;
};

/// A stretch of one line; no text where the value came from nowhere a user could look.
struct SourceSpan {
  std::shared_ptr<const SourceText> text;
  int line = 0;
  int column = 0;
  int length = 1;
};

/// A diagnostic at the span, with the line it stands in.
Diagnostic diagnostic_at(const SourceSpan& span, std::string message, std::string remedy = {});

enum class ValueKind : std::uint8_t { boolean, integer, number, text, date, array, table };

struct TableEntry;

struct Value {
  ValueKind kind = ValueKind::table;
  bool boolean = false;
  std::int64_t integer = 0;
  double number = 0;
  std::string text;                 ///< of a string; of a date, as written
  std::vector<Value> elements;      ///< of an array
  std::vector<TableEntry> entries;  ///< of a table, in the order of the text
  SourceSpan span;

  const TableEntry* find(std::string_view key) const;
  TableEntry* find(std::string_view key);
};

struct TableEntry {
  std::string key;
  SourceSpan key_span;
  Value value;
};

/// "integer", "string" … as messages name it.
std::string_view kind_name(ValueKind kind);

/// The value as the text has it, shortened: `"8"`, `[1, 2, …]`, `a table`.
std::string shown(const Value& value);

/// The whole document. Error: the first place where it is not TOML.
Result<Value> parse_toml(std::string_view text, const std::string& file_name);

/// The value of `path=value` (or a bare word, taken as a string), with positions in that text.
Result<Value> parse_toml_value(const std::shared_ptr<const SourceText>& text, std::size_t value_offset);

/// The value as TOML text on one line.
std::string to_toml(const Value& value);

/// A string in TOML's basic quotes.
std::string toml_string(std::string_view text);

}  // namespace specs
