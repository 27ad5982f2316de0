// Fills a section in from a table of a TOML document, and says what is wrong with it: wrong types, values out
// of range, unknown keys, unknown names.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "specs/diagnostics/diagnostic.h"
#include "specs/language/key_visitor.h"
#include "specs/language/model_importer.h"
#include "specs/language/value_tree.h"

namespace specs {

/// Where each key of a document stands, by its path ("model.heads").
class KeyPositions {
 public:
  void add(const std::string& path, const SourceSpan& span) { spans_.emplace(path, span); }
  bool given(const std::string& path) const { return spans_.contains(path); }
  /// Its value could not be read and what stands in its place is not the user's.
  void add_failed(const std::string& path) { failed_.insert(path); }
  /// The value itself, a table around it, or the entry that one of them is based on, could not be read.
  bool failed(const std::string& path) const;
  /// The first of the paths that was given; else the nearest table around the first path; else no place.
  SourceSpan find(const std::vector<std::string>& paths) const;

 private:
  std::map<std::string, SourceSpan> spans_;
  std::set<std::string> failed_;
};

struct ReadState {
  Diagnostics diagnostics;
  KeyPositions positions;
  ModelImporter import_model;    ///< none: imports are refused
  std::filesystem::path folder;  ///< that paths in the file are relative to
};

class KeyReader final : public KeyVisitor {
 public:
  /// `path` is the table's own ("model"; empty for the document).
  KeyReader(const Value& table, std::string path, ReadState& state);

  /// A key that someone else reads.
  void accept(std::string_view name) { known_.emplace_back(name); }

  /// Reports the keys that no visit asked for. Call once, after all keys were visited.
  void refuse_unknown_keys();

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

  void imported_model(const Key& key, ModelSpec& model) override;

 private:
  const Value* take(const Key& key);
  std::string path_of(std::string_view key) const;
  void wrong_type(const Key& key, const Value& value, const std::string& expected, std::string remedy = {});
  void out_of_range(const Key& key, const Value& value, const std::string& error,
                    const std::string& expected);
  bool read_integer(const Key& key, const Value& value, IntegerRange range, std::int64_t& out);
  bool read_name(const Key& key, const Value& value, const std::vector<std::string>& names, std::string& out);
  void read_table(const Value& value, const std::string& path, const Keys& keys);
  void read_named_table(const Key& key, const Value* value, const NamedEntries& entries, const Keys& keys);
  bool read_number(const Key& key, const Value& value, NumberRange range, double& out);
  void load_entry(const Value& name, const NamedEntries& entries, const std::string& path);

  const Value& table_;
  std::string path_;
  ReadState& state_;
  std::vector<std::string> known_;
};

}  // namespace specs
