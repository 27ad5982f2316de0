#include <algorithm>
#include <limits>

#include "specs/plan/json_keys.h"

namespace specs {
namespace {

using Json = nlohmann::ordered_json;

Json integer_type(IntegerRange range) {
  Json type = {{"type", "integer"}, {"minimum", range.minimum}};
  if (range.maximum != std::numeric_limits<std::int64_t>::max()) type["maximum"] = range.maximum;
  return type;
}

Json number_type(NumberRange range) {
  Json type = {{"type", "number"}};
  type[range.open_minimum ? "exclusiveMinimum" : "minimum"] = range.minimum;
  if (range.maximum != std::numeric_limits<double>::max())
    type[range.open_maximum ? "exclusiveMaximum" : "maximum"] = range.maximum;
  return type;
}

Json list_type(Json items) { return {{"type", "array"}, {"items", std::move(items)}}; }

Json enum_type(const std::vector<std::string>& names) { return {{"type", "string"}, {"enum", names}}; }

}  // namespace

Json JsonSchemaWriter::schema() const {
  Json schema = {{"type", "object"}, {"additionalProperties", false}};
  if (!required_.empty()) schema["required"] = required_;
  schema["properties"] = properties_;
  return schema;
}

void JsonSchemaWriter::add(std::string_view name, const Key& key, Json type, bool required) {
  Json property = {{"description", key.meaning}};
  property.update(type);
  properties_[std::string(name)] = std::move(property);
  if (required) required_.emplace_back(name);
}

void JsonSchemaWriter::flag(const Key& key, bool& /*value*/) { add(key, {{"type", "boolean"}}); }

void JsonSchemaWriter::integer(const Key& key, std::int64_t& /*value*/, IntegerRange range) {
  add(key, integer_type(range));
}

void JsonSchemaWriter::number(const Key& key, double& /*value*/, NumberRange range) {
  add(key, number_type(range));
}

void JsonSchemaWriter::quantity(const Key& key, double& /*value*/, Unit unit, NumberRange range) {
  add(json_name(key.name, unit), key, number_type(range), !key.optional);
}

void JsonSchemaWriter::bytes(const Key& key, std::int64_t& /*value*/, IntegerRange range) {
  add(json_name(key.name, Unit::bytes), key, integer_type(range), !key.optional);
}

void JsonSchemaWriter::text(const Key& key, std::string& /*value*/) { add(key, {{"type", "string"}}); }

void JsonSchemaWriter::one_of(const Key& key, std::string& /*value*/, const std::vector<std::string>& names) {
  add(key, enum_type(names));
}

void JsonSchemaWriter::integer_list(const Key& key, std::vector<std::int64_t>& /*values*/,
                                    IntegerRange range) {
  add(key, list_type(integer_type(range)));
}

void JsonSchemaWriter::list_of(const Key& key, std::vector<std::string>& /*values*/,
                               const std::vector<std::string>& names) {
  add(key, list_type(enum_type(names)));
}

void JsonSchemaWriter::flag_list(const Key& key, std::vector<bool>& /*values*/) {
  add(key, list_type({{"type", "boolean"}}));
}

void JsonSchemaWriter::text_list(const Key& key, std::vector<std::string>& /*values*/) {
  add(key, list_type({{"type", "string"}}));
}

void JsonSchemaWriter::number_map(const Key& key, std::map<std::string, double>& /*values*/,
                                  NumberRange range) {
  add(key, {{"type", "object"}, {"additionalProperties", number_type(range)}});
}

void JsonSchemaWriter::table(const Key& key, const Keys& keys) {
  JsonSchemaWriter writer;
  keys(writer);
  add(key, writer.schema());
}

void JsonSchemaWriter::optional_table(const Key& key, bool& present, const Keys& keys) {
  JsonSchemaWriter writer;
  present = true;
  keys(writer);
  add(key.name, key, writer.schema(), false);
}

void JsonSchemaWriter::named_table(const Key& key, const NamedEntries& /*entries*/, const Keys& keys) {
  table(key, keys);
}

void JsonSchemaWriter::optional_named_table(const Key& key, bool& present, const NamedEntries& /*entries*/,
                                            const Keys& keys) {
  optional_table(key, present, keys);
}

void JsonSchemaWriter::table_list(const Key& key, std::size_t size,
                                  const std::function<void(std::size_t)>& resize,
                                  const std::function<void(KeyVisitor&, std::size_t)>& keys) {
  if (size == 0) resize(1);
  JsonSchemaWriter writer;
  keys(writer, 0);
  if (size == 0) resize(0);
  add(key, list_type(writer.schema()));
}

void JsonSchemaWriter::shorthand(const Key& /*key*/, const std::vector<std::string>& /*names*/,
                                 const std::function<void(const std::string&)>& /*apply*/) {}

Json merge_schemas(const Json& first, const Json& second) {
  if (first.contains("items") && second.contains("items")) {
    Json merged = first;
    merged["items"] = merge_schemas(first["items"], second["items"]);
    return merged;
  }
  if (!first.contains("properties") || !second.contains("properties")) return first;
  Json merged = first;
  for (const auto& [name, property] : second["properties"].items()) {
    Json& known = merged["properties"][name];
    known = known.is_null() ? property : merge_schemas(known, property);
  }
  std::vector<std::string> required;
  const std::vector<std::string> others = second.value("required", std::vector<std::string>());
  for (const std::string& name : first.value("required", std::vector<std::string>()))
    if (std::find(others.begin(), others.end(), name) != others.end()) required.push_back(name);
  merged.erase("required");
  if (required.empty()) return merged;
  merged["required"] = required;
  return merged;
}

}  // namespace specs
