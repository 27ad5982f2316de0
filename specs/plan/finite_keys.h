// Finds a number that no file can hold.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "specs/language/key_visitor.h"

namespace specs {

class FiniteKeys final : public KeyVisitor {
 public:
  /// The JSON pointer of the first number that is not finite; empty where all are.
  const std::string& non_finite() const { return non_finite_; }

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
  void look_at(double value, std::string_view name);
  void found_in(std::string_view name);

  std::string non_finite_;
};

}  // namespace specs
