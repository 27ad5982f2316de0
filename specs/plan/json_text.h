// JSON as text that people read and compare, and places in such a text.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "specs/diagnostics/diagnostic.h"

namespace specs {

/// Two spaces of indent; an object or array that fits a line of 110 characters stands on one. Doubles are the
/// shortest text that reads back to the same value. Ends with a newline.
std::string json_text(const nlohmann::ordered_json& value);

/// Finds places in a text that is valid JSON.
class JsonLocator {
 public:
  /// Both live as long as the locator.
  JsonLocator(std::string_view text, std::string_view file) : text_(text), file_(file) {}

  /// A diagnostic at the value of a JSON pointer ("/placement/stages/0"), with the line it stands in. Where
  /// the pointer leads further than the text, at the last value that is there.
  Diagnostic at_value(std::string_view pointer, std::string message) const;

  /// The same at the key of that value.
  Diagnostic at_key(std::string_view pointer, std::string message) const;

  /// The same at a byte of the text.
  Diagnostic at_offset(std::size_t offset, std::size_t length, std::string message) const;

  /// Where the characters of a string without escapes begin.
  SourcePosition start_of_string(std::string_view pointer) const;

  /// The value as it stands in the text, shortened.
  std::string shown(std::string_view pointer) const;

 private:
  struct Place {
    std::size_t key = 0;
    std::size_t value = 0;
  };
  Place find(std::string_view pointer) const;
  SourcePosition position_of(std::size_t offset) const;

  std::string_view text_;
  std::string_view file_;
};

/// "a/b~c" → "a~1b~0c", as a JSON pointer names a key.
std::string pointer_token(std::string_view key);

}  // namespace specs
