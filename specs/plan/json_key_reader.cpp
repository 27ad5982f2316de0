#include "specs/plan/json_keys.h"

namespace specs {

template <class Value>
void JsonKeyReader::read(std::string_view name, Value& value) {
  const auto entry = object_.find(name);
  value = entry == object_.end() ? Value() : entry->template get<Value>();
}

void JsonKeyReader::flag(const Key& key, bool& value) { read(key.name, value); }

void JsonKeyReader::integer(const Key& key, std::int64_t& value, IntegerRange /*range*/) {
  read(key.name, value);
}

void JsonKeyReader::number(const Key& key, double& value, NumberRange /*range*/) { read(key.name, value); }

void JsonKeyReader::quantity(const Key& key, double& value, Unit unit, NumberRange /*range*/) {
  read(json_name(key.name, unit), value);
}

void JsonKeyReader::bytes(const Key& key, std::int64_t& value, IntegerRange /*range*/) {
  read(json_name(key.name, Unit::bytes), value);
}

void JsonKeyReader::text(const Key& key, std::string& value) { read(key.name, value); }

void JsonKeyReader::one_of(const Key& key, std::string& value, const std::vector<std::string>& /*names*/) {
  read(key.name, value);
}

void JsonKeyReader::integer_list(const Key& key, std::vector<std::int64_t>& values, IntegerRange /*range*/) {
  read(key.name, values);
}

void JsonKeyReader::list_of(const Key& key, std::vector<std::string>& values,
                            const std::vector<std::string>& /*names*/) {
  read(key.name, values);
}

void JsonKeyReader::flag_list(const Key& key, std::vector<bool>& values) { read(key.name, values); }

void JsonKeyReader::text_list(const Key& key, std::vector<std::string>& values) { read(key.name, values); }

void JsonKeyReader::number_map(const Key& key, std::map<std::string, double>& values, NumberRange /*range*/) {
  read(key.name, values);
}

void JsonKeyReader::table(const Key& key, const Keys& keys) {
  const auto entry = object_.find(key.name);
  if (entry == object_.end()) return;
  JsonKeyReader reader(*entry);
  keys(reader);
}

void JsonKeyReader::optional_table(const Key& key, bool& present, const Keys& keys) {
  present = object_.contains(key.name);
  table(key, keys);
}

void JsonKeyReader::named_table(const Key& key, const NamedEntries& /*entries*/, const Keys& keys) {
  table(key, keys);
}

void JsonKeyReader::optional_named_table(const Key& key, bool& present, const NamedEntries& /*entries*/,
                                         const Keys& keys) {
  optional_table(key, present, keys);
}

void JsonKeyReader::table_list(const Key& key, std::size_t /*size*/,
                               const std::function<void(std::size_t)>& resize,
                               const std::function<void(KeyVisitor&, std::size_t)>& keys) {
  const auto entry = object_.find(key.name);
  const std::size_t size = entry == object_.end() ? 0 : entry->size();
  resize(0);
  resize(size);
  for (std::size_t index = 0; index < size; ++index) {
    JsonKeyReader reader((*entry)[index]);
    keys(reader, index);
  }
}

void JsonKeyReader::shorthand(const Key& /*key*/, const std::vector<std::string>& /*names*/,
                              const std::function<void(const std::string&)>& /*apply*/) {}

}  // namespace specs
