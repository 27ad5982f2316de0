// Sections of keys as JSON: written, read back, and described by a JSON Schema.
//
// A key of a quantity is named with its unit: `memory_bandwidth` becomes `memory_bandwidth_bytes_per_second`.
// Keys that are optional and neutral are left out; where they are absent the value read is neutral.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "specs/language/key_visitor.h"

namespace specs {

/// The name of a quantity's key in JSON.
std::string json_name(std::string_view name, Unit unit);

class JsonKeyWriter final : public KeyVisitor {
 public:
  /// The section as an object, in the order of its keys. Numbers that are not finite become null.
  const nlohmann::ordered_json& object() const& { return object_; }
  nlohmann::ordered_json object() && { return std::move(object_); }

  void flag(const Key& key, bool& value) override;
  void integer(const Key& key, std::int64_t& value, IntegerRange range) override;
  void number(const Key& key, double& value, NumberRange range) override;
  void quantity(const Key& key, double& value, Unit unit, NumberRange range) override;
  void bytes(const Key& key, std::int64_t& value, IntegerRange range) override;
  void text(const Key& key, std::string& value) override;
  void one_of(const Key& key, std::string& value, const std::vector<std::string>& names) override;
  void integer_list(const Key& key, std::vector<std::int64_t>& values, IntegerRange range) override;
  void list_of(const Key& key, std::vector<std::string>& values,
               const std::vector<std::string>& names) override;
  void flag_list(const Key& key, std::vector<bool>& values) override;
  void text_list(const Key& key, std::vector<std::string>& values) override;
  void number_map(const Key& key, std::map<std::string, double>& values, NumberRange range) override;
  void table(const Key& key, const Keys& keys) override;
  void optional_table(const Key& key, bool& present, const Keys& keys) override;
  void named_table(const Key& key, const NamedEntries& entries, const Keys& keys) override;
  void optional_named_table(const Key& key, bool& present, const NamedEntries& entries,
                            const Keys& keys) override;
  void table_list(const Key& key, std::size_t size, const std::function<void(std::size_t)>& resize,
                  const std::function<void(KeyVisitor&, std::size_t)>& keys) override;
  void shorthand(const Key& key, const std::vector<std::string>& names,
                 const std::function<void(const std::string&)>& apply) override;

 private:
  nlohmann::ordered_json object_ = nlohmann::ordered_json::object();
};

/// Requires an object that agrees with the section's schema.
class JsonKeyReader final : public KeyVisitor {
 public:
  explicit JsonKeyReader(const nlohmann::json& object) : object_(object) {}

  bool reads() const override { return true; }
  void flag(const Key& key, bool& value) override;
  void integer(const Key& key, std::int64_t& value, IntegerRange range) override;
  void number(const Key& key, double& value, NumberRange range) override;
  void quantity(const Key& key, double& value, Unit unit, NumberRange range) override;
  void bytes(const Key& key, std::int64_t& value, IntegerRange range) override;
  void text(const Key& key, std::string& value) override;
  void one_of(const Key& key, std::string& value, const std::vector<std::string>& names) override;
  void integer_list(const Key& key, std::vector<std::int64_t>& values, IntegerRange range) override;
  void list_of(const Key& key, std::vector<std::string>& values,
               const std::vector<std::string>& names) override;
  void flag_list(const Key& key, std::vector<bool>& values) override;
  void text_list(const Key& key, std::vector<std::string>& values) override;
  void number_map(const Key& key, std::map<std::string, double>& values, NumberRange range) override;
  void table(const Key& key, const Keys& keys) override;
  void optional_table(const Key& key, bool& present, const Keys& keys) override;
  void named_table(const Key& key, const NamedEntries& entries, const Keys& keys) override;
  void optional_named_table(const Key& key, bool& present, const NamedEntries& entries,
                            const Keys& keys) override;
  void table_list(const Key& key, std::size_t size, const std::function<void(std::size_t)>& resize,
                  const std::function<void(KeyVisitor&, std::size_t)>& keys) override;
  void shorthand(const Key& key, const std::vector<std::string>& names,
                 const std::function<void(const std::string&)>& apply) override;

 private:
  template <class Value>
  void read(std::string_view name, Value& value);

  const nlohmann::json& object_;
};

class JsonSchemaWriter final : public KeyVisitor {
 public:
  /// The schema of the section: no other keys than its own, all but the optional ones required.
  nlohmann::ordered_json schema() const;

  void flag(const Key& key, bool& value) override;
  void integer(const Key& key, std::int64_t& value, IntegerRange range) override;
  void number(const Key& key, double& value, NumberRange range) override;
  void quantity(const Key& key, double& value, Unit unit, NumberRange range) override;
  void bytes(const Key& key, std::int64_t& value, IntegerRange range) override;
  void text(const Key& key, std::string& value) override;
  void one_of(const Key& key, std::string& value, const std::vector<std::string>& names) override;
  void integer_list(const Key& key, std::vector<std::int64_t>& values, IntegerRange range) override;
  void list_of(const Key& key, std::vector<std::string>& values,
               const std::vector<std::string>& names) override;
  void flag_list(const Key& key, std::vector<bool>& values) override;
  void text_list(const Key& key, std::vector<std::string>& values) override;
  void number_map(const Key& key, std::map<std::string, double>& values, NumberRange range) override;
  void table(const Key& key, const Keys& keys) override;
  void optional_table(const Key& key, bool& present, const Keys& keys) override;
  void named_table(const Key& key, const NamedEntries& entries, const Keys& keys) override;
  void optional_named_table(const Key& key, bool& present, const NamedEntries& entries,
                            const Keys& keys) override;
  void table_list(const Key& key, std::size_t size, const std::function<void(std::size_t)>& resize,
                  const std::function<void(KeyVisitor&, std::size_t)>& keys) override;
  void shorthand(const Key& key, const std::vector<std::string>& names,
                 const std::function<void(const std::string&)>& apply) override;

 private:
  void add(std::string_view name, const Key& key, nlohmann::ordered_json type, bool required);
  void add(const Key& key, nlohmann::ordered_json type) {
    add(key.name, key, std::move(type), !key.optional);
  }

  nlohmann::ordered_json properties_ = nlohmann::ordered_json::object();
  std::vector<std::string> required_;
};

/// What accepts everything that either of two schemas of one section accepts: for sections whose keys depend
/// on their values.
nlohmann::ordered_json merge_schemas(const nlohmann::ordered_json& first,
                                     const nlohmann::ordered_json& second);

}  // namespace specs
