#include "specs/plan/json_keys.h"

namespace specs {

std::string json_name(std::string_view name, Unit unit) {
  const std::string base(name);
  switch (unit) {
    case Unit::bytes:
      return base + "_bytes";
    case Unit::bytes_per_second:
      return base + "_bytes_per_second";
    case Unit::seconds:
      return base + "_seconds";
    case Unit::flops_per_second:
      return base + "_flops_per_second";
    case Unit::watts:
      return base + "_watts";
  }
  return base;
}

void JsonKeyWriter::flag(const Key& key, bool& value) {
  if (value || !key.optional) object_[std::string(key.name)] = value;
}

void JsonKeyWriter::integer(const Key& key, std::int64_t& value, IntegerRange /*range*/) {
  if (value != 0 || !key.optional) object_[std::string(key.name)] = value;
}

void JsonKeyWriter::number(const Key& key, double& value, NumberRange /*range*/) {
  if (value != 0 || !key.optional) object_[std::string(key.name)] = value;
}

void JsonKeyWriter::quantity(const Key& key, double& value, Unit unit, NumberRange /*range*/) {
  if (value != 0 || !key.optional) object_[json_name(key.name, unit)] = value;
}

void JsonKeyWriter::bytes(const Key& key, std::int64_t& value, IntegerRange /*range*/) {
  if (value != 0 || !key.optional) object_[json_name(key.name, Unit::bytes)] = value;
}

void JsonKeyWriter::text(const Key& key, std::string& value) {
  if (!value.empty() || !key.optional) object_[std::string(key.name)] = value;
}

void JsonKeyWriter::one_of(const Key& key, std::string& value, const std::vector<std::string>& /*names*/) {
  text(key, value);
}

void JsonKeyWriter::integer_list(const Key& key, std::vector<std::int64_t>& values, IntegerRange /*range*/) {
  if (!values.empty() || !key.optional) object_[std::string(key.name)] = values;
}

void JsonKeyWriter::list_of(const Key& key, std::vector<std::string>& values,
                            const std::vector<std::string>& /*names*/) {
  text_list(key, values);
}

void JsonKeyWriter::flag_list(const Key& key, std::vector<bool>& values) {
  if (!values.empty() || !key.optional) object_[std::string(key.name)] = values;
}

void JsonKeyWriter::text_list(const Key& key, std::vector<std::string>& values) {
  if (!values.empty() || !key.optional) object_[std::string(key.name)] = values;
}

void JsonKeyWriter::number_map(const Key& key, std::map<std::string, double>& values, NumberRange /*range*/) {
  if (!values.empty() || !key.optional) object_[std::string(key.name)] = values;
}

void JsonKeyWriter::table(const Key& key, const Keys& keys) {
  JsonKeyWriter writer;
  keys(writer);
  object_[std::string(key.name)] = std::move(writer.object_);
}

void JsonKeyWriter::optional_table(const Key& key, bool& present, const Keys& keys) {
  if (present) table(key, keys);
}

void JsonKeyWriter::named_table(const Key& key, const NamedEntries& /*entries*/, const Keys& keys) {
  table(key, keys);
}

void JsonKeyWriter::optional_named_table(const Key& key, bool& present, const NamedEntries& /*entries*/,
                                         const Keys& keys) {
  if (present) table(key, keys);
}

void JsonKeyWriter::table_list(const Key& key, std::size_t size,
                               const std::function<void(std::size_t)>& /*resize*/,
                               const std::function<void(KeyVisitor&, std::size_t)>& keys) {
  if (size == 0 && key.optional) return;
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (std::size_t index = 0; index < size; ++index) {
    JsonKeyWriter writer;
    keys(writer, index);
    list.push_back(std::move(writer.object_));
  }
  object_[std::string(key.name)] = std::move(list);
}

void JsonKeyWriter::shorthand(const Key& /*key*/, const std::vector<std::string>& /*names*/,
                              const std::function<void(const std::string&)>& /*apply*/) {}

}  // namespace specs
