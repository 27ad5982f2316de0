#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

#include "specs/diagnostics/diagnostic.h"
#include "specs/plan/embedded_schemas.h"
#include "specs/plan/json_text.h"
#include "specs/plan/plan_schema.h"

namespace specs {
namespace {

using nlohmann::json;

const json& embedded_schema() {
  static const json schema = [] {
    for (const EmbeddedFile& file : embedded_schemas())
      if (file.name == "plan.schema.json") return json::parse(file.text);
    return json();
  }();
  return schema;
}

const valijson::Schema& compiled_schema() {
  static const std::unique_ptr<const valijson::Schema> schema = [] {
    auto made = std::make_unique<valijson::Schema>();
    valijson::SchemaParser parser(valijson::SchemaParser::kDraft7);
    parser.populateSchema(valijson::adapters::NlohmannJsonAdapter(embedded_schema()), *made);
    return made;
  }();
  return *schema;
}

/// "<root>", "[placement]", "[stages]", "[0]" as valijson names a place.
std::vector<std::string> tokens_of(const std::vector<std::string>& context) {
  std::vector<std::string> tokens;
  for (const std::string& part : context)
    if (part.size() >= 2 && part.front() == '[') tokens.push_back(part.substr(1, part.size() - 2));
  return tokens;
}

std::string pointer_of(const std::vector<std::string>& tokens) {
  std::string pointer;
  for (const std::string& token : tokens) pointer += "/" + pointer_token(token);
  return pointer;
}

/// The schema of a place; null where the schema knows none.
const json* schema_at(const std::vector<std::string>& tokens) {
  const json* schema = &embedded_schema();
  for (const std::string& token : tokens) {
    if (schema->contains("items"))
      schema = &(*schema)["items"];
    else if (schema->contains("properties") && (*schema)["properties"].contains(token))
      schema = &(*schema)["properties"][token];
    else if (schema->contains("additionalProperties") && (*schema)["additionalProperties"].is_object())
      schema = &(*schema)["additionalProperties"];
    else
      return nullptr;
  }
  return schema;
}

std::string limits_of(const json& schema) {
  std::string limits;
  const auto add = [&](const char* key, const char* words) {
    if (!schema.contains(key)) return;
    limits += fmt::format("{}{} {}", limits.empty() ? " " : " and ", words, schema[key].dump());
  };
  add("minimum", "of at least");
  add("exclusiveMinimum", "above");
  add("maximum", "of at most");
  add("exclusiveMaximum", "below");
  return limits;
}

std::string expectation_of(const json& schema) {
  if (schema.contains("enum"))
    return fmt::format("one of {}", fmt::join(schema["enum"].get<std::vector<std::string>>(), ", "));
  const std::string type = schema.value("type", "value");
  const std::string article = type == "integer" || type == "array" || type == "object" ? "an " : "a ";
  return article + type + limits_of(schema);
}

bool has_type(const json& value, const std::string& type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_boolean();
  if (type == "integer") return value.is_number_integer();
  return value.is_number();
}

/// What an object has too much or too little.
void explain_object(const json& value, const json& schema, const std::string& pointer,
                    std::vector<SchemaViolation>& found) {
  std::vector<std::string> known;
  for (const auto& [name, property] : schema["properties"].items()) known.push_back(name);
  for (const auto& [name, inner] : value.items()) {
    if (schema["properties"].contains(name)) continue;
    const std::optional<std::string> nearest = nearest_name(name, known);
    found.push_back({.pointer = pointer + "/" + pointer_token(name),
                     .message = fmt::format("{}: unknown key \"{}\"", pointer.empty() ? "/" : pointer, name),
                     .expected = {},
                     .remedy = nearest ? fmt::format("did you mean \"{}\"?", *nearest) : "remove it",
                     .at_key = true});
  }
  for (const json& name : schema.value("required", json::array()))
    if (!value.contains(name.get<std::string>()))
      found.push_back({.pointer = pointer,
                       .message = fmt::format("{}: the key \"{}\" is missing",
                                              pointer.empty() ? "/" : pointer, name.get<std::string>()),
                       .expected = {},
                       .remedy = {}});
}

/// `outer`: something inside is broken too, so that only the keys of the place itself are of interest.
void explain(const json& document, const std::vector<std::string>& tokens, const std::string& description,
             bool outer, std::vector<SchemaViolation>& found) {
  const std::string pointer = pointer_of(tokens);
  const json* schema = schema_at(tokens);
  const json::json_pointer place(pointer);
  const json* value = document.contains(place) ? &document[place] : nullptr;
  const bool right_type =
      schema != nullptr && value != nullptr && has_type(*value, schema->value("type", "value"));
  const std::size_t before = found.size();
  if (right_type && value->is_object() && schema->contains("properties"))
    explain_object(*value, *schema, pointer, found);
  if (outer || found.size() > before) return;
  const std::string expected = schema == nullptr ? std::string() : expectation_of(*schema);
  const std::string_view message = expected.empty() ? std::string_view(description)
                                   : right_type     ? "not an allowed value"
                                                    : "wrong type";
  found.push_back({.pointer = pointer,
                   .message = fmt::format("{}: {}", pointer.empty() ? "/" : pointer, message),
                   .expected = expected,
                   .remedy = {}});
}

/// Integers beyond 64 bits with sign agree with "integer" but have no place in a plan.
void find_large_integers(const json& value, const std::string& pointer, std::vector<SchemaViolation>& found) {
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX))
    found.push_back({.pointer = pointer,
                     .message = fmt::format("{}: not an allowed value", pointer),
                     .expected = fmt::format("an integer of at most {}", INT64_MAX),
                     .remedy = {}});
  if (value.is_object())
    for (const auto& [name, inner] : value.items())
      find_large_integers(inner, pointer + "/" + pointer_token(name), found);
  if (value.is_array())
    for (std::size_t index = 0; index < value.size(); ++index)
      find_large_integers(value[index], fmt::format("{}/{}", pointer, index), found);
}

}  // namespace

std::vector<SchemaViolation> schema_violations(const json& document) {
  valijson::Validator validator(valijson::Validator::kStrongTypes);
  valijson::ValidationResults results;
  const valijson::adapters::NlohmannJsonAdapter document_adapter(document);
  std::vector<SchemaViolation> found;
  if (!validator.validate(compiled_schema(), document_adapter, &results)) {
    struct Error {
      std::vector<std::string> tokens;
      std::string description;
    };
    std::vector<Error> errors;
    for (valijson::ValidationResults::Error error; results.popError(error);)
      errors.push_back({tokens_of(error.context), error.description});
    // A container is invalid because of what is in it: only the innermost places are of interest. In order,
    // what lies inside a place follows it.
    std::set<std::vector<std::string>> places, explained;
    for (const Error& error : errors) places.insert(error.tokens);
    for (const Error& error : errors) {
      const auto next = places.upper_bound(error.tokens);
      const bool outer = next != places.end() && next->size() > error.tokens.size() &&
                         std::equal(error.tokens.begin(), error.tokens.end(), next->begin());
      if (explained.insert(error.tokens).second)
        explain(document, error.tokens, error.description, outer, found);
    }
  }
  if (found.empty()) find_large_integers(document, "", found);
  return found;
}

}  // namespace specs
