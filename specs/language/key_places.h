// Where the keys of an experiment stand, for what is found out about it after it was read.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "specs/diagnostics/diagnostic.h"
#include "specs/language/value_tree.h"

namespace specs {

/// By path ("search.tensor"): the value as the file or an override writes it.
class KeyPlaces {
 public:
  KeyPlaces() = default;
  explicit KeyPlaces(const Value& document);

  /// "spec.toml:14:12"; empty where the key is not written.
  std::string words(const std::string& path) const;

  /// The diagnostics, those without a position at the key that their message begins with.
  Diagnostics located(const Diagnostics& diagnostics) const;

 private:
  void add(const Value& table, const std::string& prefix);

  std::map<std::string, SourceSpan> spans_;
};

/// Of an experiment that can be read; no places where it cannot.
KeyPlaces read_key_places(const std::filesystem::path& path, const std::vector<std::string>& overrides = {});

}  // namespace specs
