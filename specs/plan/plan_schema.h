// The published JSON Schema of plan.json, and what a document breaks of it.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace specs {

/// The schema that the keys of a plan make; plan.schema.json is its text. Draft 7.
nlohmann::ordered_json plan_schema();

struct SchemaViolation {
  std::string pointer;   ///< JSON pointer to the value, or to the key that should not be there
  std::string message;   ///< what is wrong
  std::string expected;  ///< "integer of at least 1"; empty where the message says it all
  std::string remedy;    ///< the nearest known key; empty where there is none
  bool at_key = false;   ///< the place is the key, not the value
  bool operator==(const SchemaViolation&) const = default;
};

/// All violations of the embedded schema, the innermost for each place; empty where the document agrees.
std::vector<SchemaViolation> schema_violations(const nlohmann::json& document);

}  // namespace specs
