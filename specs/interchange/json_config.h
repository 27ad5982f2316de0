// A JSON configuration of another tool, read key by key: several names for one value, defaults that are
// noted, errors with their place.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "specs/diagnostics/diagnostic.h"

namespace specs {

class JsonConfig {
 public:
  /// `object` is the document or an object inside it; `text` is the whole document, for places.
  JsonConfig(const nlohmann::json& object, std::string_view text, std::string file_name,
             Diagnostics& diagnostics)
      : object_(object), text_(text), file_name_(std::move(file_name)), diagnostics_(diagnostics) {}

  using Names = std::initializer_list<const char*>;

  /// The first of the names that is there and not null, an integer of at least `minimum`; else `fallback`,
  /// which is remembered as a default.
  std::int64_t integer(Names names, std::int64_t fallback, std::int64_t minimum = 1);
  double number(Names names, double fallback);
  bool flag(Names names, bool fallback);
  std::string text(Names names, const std::string& fallback);
  bool has(const char* name) const;

  void error(const std::string& name, std::string message, std::string remedy = {});
  void note(const std::string& name, std::string message);

  /// "hidden_size 4096, num_hidden_layers 32": what was not given.
  const std::vector<std::string>& defaulted() const { return defaulted_; }
  const nlohmann::json& object() const { return object_; }

 private:
  const nlohmann::json* find(Names names, std::string& name) const;
  void add(Severity severity, const std::string& name, std::string message, std::string remedy);

  const nlohmann::json& object_;
  std::string_view text_;
  std::string file_name_;
  Diagnostics& diagnostics_;
  std::vector<std::string> defaulted_;
};

/// The document. Errors: not JSON, with line and column; no object.
Result<nlohmann::json> parse_json_object(std::string_view text, const std::string& file_name);

/// Line and column (in code points) of a byte of a text.
SourcePosition position_of_byte(std::string_view text, std::size_t byte, const std::string& file_name);

}  // namespace specs
