// Fills every key of a section with a random legal value, so that a property is tested over keys that do not
// exist yet.
#pragma once

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "specs/language/key_visitor.h"

namespace tests {

class RandomFiller final : public specs::KeyVisitor {
 public:
  explicit RandomFiller(unsigned seed) : random_(seed) {}

  void flag(const specs::Key&, bool& value) override { value = coin(); }

  void integer(const specs::Key& key, std::int64_t& value, specs::IntegerRange range) override {
    if (key.optional && coin()) {
      value = 0;
      return;
    }
    const std::int64_t reach = std::min<std::int64_t>(range.maximum - range.minimum, std::int64_t{1} << 40);
    value = range.minimum + std::uniform_int_distribution<std::int64_t>(
                                0, coin() ? reach : std::min<std::int64_t>(reach, 10))(random_);
  }

  void number(const specs::Key& key, double& value, specs::NumberRange range) override {
    if (key.optional && coin()) {
      value = 0;
      return;
    }
    const double reach = std::min(range.maximum - range.minimum, std::exp(30.0 * uniform()));
    value = range.minimum + reach * uniform();
    if (coin()) value = std::round(value * 1000) / 1000;
    if (!specs::range_error(value, range).empty()) value = range.minimum + reach / 3;
  }

  void quantity(const specs::Key& key, double& value, specs::Unit, specs::NumberRange range) override {
    number(key, value, range);
  }

  void bytes(const specs::Key& key, std::int64_t& value, specs::IntegerRange range) override {
    integer(key, value, range);
    if (coin() && value > 1 << 20) value = value >> 20 << 20;
  }

  void text(const specs::Key&, std::string& value) override {
    static const std::vector<std::string> texts{"", "plain", "with \"quotes\" and \\", "tab\tand ünïcödé",
                                                "line\nbreak"};
    value = one(texts);
  }

  void one_of(const specs::Key& key, std::string& value, const std::vector<std::string>& names) override {
    value = key.optional && coin() ? std::string() : one(names);
  }

  void integer_list(const specs::Key& key, std::vector<std::int64_t>& values,
                    specs::IntegerRange range) override {
    values.resize(length());
    for (std::int64_t& value : values) integer({.name = key.name, .meaning = {}}, value, range);
  }

  void list_of(const specs::Key&, std::vector<std::string>& values,
               const std::vector<std::string>& names) override {
    values.resize(length());
    for (std::string& value : values) value = one(names);
  }

  void flag_list(const specs::Key&, std::vector<bool>& values) override { values.assign(length(), coin()); }

  void text_list(const specs::Key& key, std::vector<std::string>& values) override {
    values.resize(length());
    for (std::string& value : values) text(key, value);
  }

  void number_map(const specs::Key& key, std::map<std::string, double>& values,
                  specs::NumberRange range) override {
    values.clear();
    for (const char* name : {"gemm", "attention kernel"})
      if (coin()) number(key, values[name], range);
  }

  void table(const specs::Key&, const Keys& keys) override { keys(*this); }

  void optional_table(const specs::Key&, bool& present, const Keys& keys) override {
    present = coin();
    if (present) keys(*this);
  }

  void named_table(const specs::Key&, const specs::NamedEntries&, const Keys& keys) override { keys(*this); }

  void optional_named_table(const specs::Key&, bool& present, const specs::NamedEntries&,
                            const Keys& keys) override {
    present = coin();
    if (present) keys(*this);
  }

  void table_list(const specs::Key&, std::size_t, const std::function<void(std::size_t)>& resize,
                  const std::function<void(KeyVisitor&, std::size_t)>& keys) override {
    const std::size_t size = 1 + length();
    resize(size);
    for (std::size_t i = 0; i < size; ++i) keys(*this, i);
  }

  void shorthand(const specs::Key&, const std::vector<std::string>&,
                 const std::function<void(const std::string&)>&) override {}

  bool coin() { return std::uniform_int_distribution<int>(0, 1)(random_) == 1; }

 private:
  double uniform() { return std::uniform_real_distribution<double>(0, 1)(random_); }
  std::size_t length() { return std::uniform_int_distribution<std::size_t>(0, 3)(random_); }
  const std::string& one(const std::vector<std::string>& values) {
    return values[std::uniform_int_distribution<std::size_t>(0, values.size() - 1)(random_)];
  }

  std::mt19937 random_;
};

}  // namespace tests
