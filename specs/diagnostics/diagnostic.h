// What a user did wrong, as a value: where, what was seen, what was expected, and what to do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace specs {

enum class Severity : std::uint8_t { error, warning, note };

/// A place in a text. Line and column count from 1; 0 means unknown. Columns count code points.
struct SourcePosition {
  std::string file;
  int line = 0;
  int column = 0;
  bool operator==(const SourcePosition&) const = default;
};

struct Diagnostic {
  Severity severity = Severity::error;
  SourcePosition position;
  std::string message;   ///< what is wrong, with the numbers that make it wrong ("heads 52 % tensor 8 = 4")
  std::string expected;  ///< empty where the message says it all
  std::string seen;      ///< the offending text or value
  std::string remedy;    ///< what to write instead; empty where unknown
  std::string source_line;  ///< the line the caret stands under; empty where there is none
  int caret_length = 1;
  bool operator==(const Diagnostic&) const = default;
};

/// `file:line:column: error: message`, then the source line with a caret, then expected / seen / remedy
/// lines.
std::string render(const Diagnostic& diagnostic);

/// All that was found in one input, in order of position. Errors never hide one another.
class Diagnostics {
 public:
  void add(Diagnostic diagnostic) { entries_.push_back(std::move(diagnostic)); }
  void error(SourcePosition position, std::string message, std::string remedy = {});
  void warning(SourcePosition position, std::string message, std::string remedy = {});
  void append(const Diagnostics& other);
  /// Stable order by file, line and column.
  void sort_by_position();
  bool has_errors() const;
  bool empty() const { return entries_.empty(); }
  const std::vector<Diagnostic>& entries() const { return entries_; }
  std::string render() const;

 private:
  std::vector<Diagnostic> entries_;
};

/// A value, or the reasons why there is none; warnings may stand beside a value.
template <class Value>
struct Result {
  std::optional<Value> value;
  Diagnostics diagnostics;

  bool ok() const { return value.has_value(); }
  explicit operator bool() const { return ok(); }
  const Value& operator*() const { return *value; }
  Value& operator*() { return *value; }
  const Value* operator->() const { return &*value; }
  Value* operator->() { return &*value; }
};

/// The known name closest to `seen` (edit distance at most a third of its length, at least 2), or nothing.
/// What a name begins with up to a hyphen counts too, at one more; among equals the longest common start
/// wins.
std::optional<std::string> nearest_name(std::string_view seen, const std::vector<std::string>& known);

}  // namespace specs
