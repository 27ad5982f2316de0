// The keys of the experiment language as the tables of docs/experiment-language.md, from the reader's own
// definitions.
#pragma once

#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "specs/language/key_visitor.h"
#include "specs/language/key_writer.h"

namespace tests {

class KeyReference final : public specs::KeyVisitor {
 public:
  explicit KeyReference(std::string path = {}) : path_(std::move(path)) {}

  /// One table for the keys of this section, then those of the tables in it.
  std::string markdown() const {
    std::string text;
    if (!rows_.empty())
      text = fmt::format("### `{}`\n\n| key | type | default | meaning |\n|---|---|---|---|\n{}\n",
                         path_.empty() ? "top of the file" : path_, rows_);
    return text + tables_;
  }

  void flag(const specs::Key& key, bool& value) override { row(key, "boolean", value ? "true" : "false"); }

  void integer(const specs::Key& key, std::int64_t& value, specs::IntegerRange range) override {
    expect_legal_default(key, range_error(value, range));
    row(key, describe(range), fmt::format("{}", value));
  }

  void number(const specs::Key& key, double& value, specs::NumberRange range) override {
    expect_legal_default(key, range_error(value, range));
    row(key, describe(range), specs::number_toml(value));
  }

  void quantity(const specs::Key& key, double& value, specs::Unit unit, specs::NumberRange range) override {
    expect_legal_default(key, range_error(value, range));
    row(key, fmt::format("{}, {}; or \"{}\"", unit_name(unit), describe(range), unit_example(unit)),
        quantity_toml(value, unit));
  }

  void bytes(const specs::Key& key, std::int64_t& value, specs::IntegerRange range) override {
    expect_legal_default(key, range_error(value, range));
    row(key, fmt::format("bytes, integer of at least {}; or \"80 GiB\"", range.minimum),
        fmt::format("{}", value));
  }

  void text(const specs::Key& key, std::string& value) override { row(key, "string", value); }

  void one_of(const specs::Key& key, std::string& value, const std::vector<std::string>& names) override {
    row(key, choices(names), value);
  }

  void integer_list(const specs::Key& key, std::vector<std::int64_t>& values,
                    specs::IntegerRange range) override {
    row(key, fmt::format("list: {}", describe(range)),
        values.empty() ? "free" : fmt::format("{}", values[0]));
  }

  void list_of(const specs::Key& key, std::vector<std::string>&,
               const std::vector<std::string>& names) override {
    row(key, "list: " + choices(names), "free");
  }

  void flag_list(const specs::Key& key, std::vector<bool>&) override { row(key, "list: boolean", "free"); }

  void text_list(const specs::Key& key, std::vector<std::string>&) override {
    row(key, "list: string", "empty");
  }

  void number_map(const specs::Key& key, std::map<std::string, double>&, specs::NumberRange) override {
    row(key, "table of numbers", "empty");
  }

  void table(const specs::Key& key, const Keys& keys) override { section(key, "", keys); }

  void optional_table(const specs::Key& key, bool&, const Keys& keys) override {
    row(key, fmt::format("table, see `{}`", path_of(key)), "absent");
    section(key, "", keys);
  }

  void named_table(const specs::Key& key, const specs::NamedEntries& entries, const Keys& keys) override {
    row(key, fmt::format("name of a {}, or a table with `preset` and changes", entries.kind), "");
    section(key, "", keys);
  }

  void optional_named_table(const specs::Key& key, bool&, const specs::NamedEntries& entries,
                            const Keys&) override {
    row(key, fmt::format("name of a {}, or a table with `preset` and changes", entries.kind), "absent");
  }

  void table_list(const specs::Key& key, std::size_t, const std::function<void(std::size_t)>& resize,
                  const std::function<void(KeyVisitor&, std::size_t)>& keys) override {
    row(key, fmt::format("list of tables, see `{}`", path_of(key) + "[]"), "empty");
    resize(1);
    section(key, "[]", [&keys](KeyVisitor& visitor) { keys(visitor, 0); });
    resize(0);
  }

  void shorthand(const specs::Key& key, const std::vector<std::string>& names,
                 const std::function<void(const std::string&)>&) override {
    row(key, choices(names), "");
  }

  void imported_model(const specs::Key& key, specs::ModelSpec&) override { row(key, "path", ""); }

 private:
  /// A default that could not be written in a file is either derived or needed, which its words must say.
  void expect_legal_default(const specs::Key& key, const std::string& error) const {
    EXPECT_TRUE(error.empty() || !key.default_text.empty()) << path_of(key) << ": " << error;
  }

  std::string path_of(const specs::Key& key) const {
    return path_.empty() ? std::string(key.name) : fmt::format("{}.{}", path_, key.name);
  }

  static std::string choices(const std::vector<std::string>& names) {
    constexpr std::size_t most = 8;
    std::string text = "one of";
    for (std::size_t i = 0; i < names.size() && i < most; ++i)
      text += fmt::format("{} {}", i == 0 ? "" : ",", names[i].empty() ? "\"\"" : names[i]);
    return names.size() > most ? text + " …" : text;
  }

  void row(const specs::Key& key, const std::string& type, const std::string& value) {
    const std::string shown = !key.default_text.empty() ? std::string(key.default_text) : value;
    rows_ += fmt::format("| `{}` | {} | {} | {} |\n", key.name, type, shown, key.meaning);
  }

  void section(const specs::Key& key, const std::string& suffix, const Keys& keys) {
    KeyReference reference(path_of(key) + suffix);
    keys(reference);
    tables_ += reference.markdown();
  }

  std::string path_;
  std::string rows_;
  std::string tables_;
};

}  // namespace tests
