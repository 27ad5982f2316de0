// One table of keys per section of the experiment language, walked by whoever reads, writes, checks or
// documents it.
//
// A section is a function `void visit_keys(KeyVisitor&, Section&)` that names each key once, with its range
// and meaning. A reader fills the value in, a writer prints it, a reference lists it; none of them knows
// sections.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "specs/diagnostics/diagnostic.h"
#include "specs/diagnostics/enum_names.h"
#include "specs/language/model.h"
#include "specs/language/quantity.h"

namespace specs {

struct Key {
  std::string_view name;
  std::string_view meaning;
  std::string_view default_text = {};  ///< where the default is derived, in words
  bool optional = false;               ///< a zero or empty value is left out when written
};

struct IntegerRange {
  std::int64_t minimum = 0;
  std::int64_t maximum = std::numeric_limits<std::int64_t>::max();
};

struct NumberRange {
  double minimum = 0;
  double maximum = std::numeric_limits<double>::max();
  bool open_minimum = false;  ///< the minimum itself is not allowed
  bool open_maximum = false;
};

inline constexpr NumberRange positive{.open_minimum = true};
inline constexpr NumberRange fraction{.minimum = 0, .maximum = 1};

/// Where a table may be given by the name of a catalog entry, alone or as `preset` with keys that change it.
struct NamedEntries {
  std::string_view kind;                                     ///< "node", for messages
  std::vector<std::string> names;                            ///< all known ones
  std::function<Diagnostics(const std::string& name)> load;  ///< replaces the value; errors and notes
};

class KeyVisitor {
 public:
  virtual ~KeyVisitor() = default;

  /// True for a visitor that fills values in: then a default may follow from a key visited before.
  virtual bool reads() const { return false; }

  virtual void flag(const Key& key, bool& value) = 0;
  virtual void integer(const Key& key, std::int64_t& value, IntegerRange range) = 0;
  virtual void number(const Key& key, double& value, NumberRange range) = 0;
  virtual void quantity(const Key& key, double& value, Unit unit, NumberRange range) = 0;
  virtual void bytes(const Key& key, std::int64_t& value, IntegerRange range) = 0;
  virtual void text(const Key& key, std::string& value) = 0;
  /// `value` is always one of `names`, or empty where the key is optional and not given.
  virtual void one_of(const Key& key, std::string& value, const std::vector<std::string>& names) = 0;
  virtual void integer_list(const Key& key, std::vector<std::int64_t>& values, IntegerRange range) = 0;
  virtual void list_of(const Key& key, std::vector<std::string>& values,
                       const std::vector<std::string>& names) = 0;
  virtual void flag_list(const Key& key, std::vector<bool>& values) = 0;
  virtual void text_list(const Key& key, std::vector<std::string>& values) = 0;
  /// A table whose keys are free.
  virtual void number_map(const Key& key, std::map<std::string, double>& values, NumberRange range) = 0;

  using Keys = std::function<void(KeyVisitor&)>;
  virtual void table(const Key& key, const Keys& keys) = 0;
  /// `present` tells whether the table is there, and is set to true where it is given.
  virtual void optional_table(const Key& key, bool& present, const Keys& keys) = 0;
  virtual void named_table(const Key& key, const NamedEntries& entries, const Keys& keys) = 0;
  virtual void optional_named_table(const Key& key, bool& present, const NamedEntries& entries,
                                    const Keys& keys) = 0;
  virtual void table_list(const Key& key, std::size_t size, const std::function<void(std::size_t)>& resize,
                          const std::function<void(KeyVisitor&, std::size_t)>& keys) = 0;

  /// A key that only helps to write the others (`family`, `preset`): `apply` runs where it is given. It is
  /// never written out.
  virtual void shorthand(const Key& key, const std::vector<std::string>& names,
                         const std::function<void(const std::string&)>& apply) = 0;

  /// A file of another tool that the model starts from. Only what reads an experiment has a use for it.
  virtual void imported_model(const Key& /*key*/, ModelSpec& /*model*/) {}

  template <class Enum>
  void choice(const Key& key, Enum& value) {
    std::string name(name_of(value));
    one_of(key, name, all_names<Enum>());
    if (const auto chosen = from_name<Enum>(name)) value = *chosen;
  }

  template <class Enum>
  void optional_choice(const Key& key, std::optional<Enum>& value) {
    std::string name(value ? name_of(*value) : std::string_view());
    one_of(key, name, all_names<Enum>());
    value = from_name<Enum>(name);
  }

  template <class Enum>
  void choice_list(const Key& key, std::vector<Enum>& values) {
    std::vector<std::string> names;
    for (const Enum value : values) names.emplace_back(name_of(value));
    list_of(key, names, all_names<Enum>());
    values.clear();
    for (const std::string& name : names)
      if (const auto chosen = from_name<Enum>(name)) values.push_back(*chosen);
  }

  template <class Item, class ItemKeys>
  void list_of_tables(const Key& key, std::vector<Item>& items, const ItemKeys& item_keys) {
    table_list(
        key, items.size(), [&items](std::size_t size) { items.resize(size); },
        [&items, &item_keys](KeyVisitor& visitor, std::size_t index) { item_keys(visitor, items[index]); });
  }
};

/// What is wrong with a value, as "below the minimum of 1"; empty where nothing is.
std::string range_error(std::int64_t value, IntegerRange range);
std::string range_error(double value, NumberRange range);

/// "integer of at least 1", "number between 0 and 1".
std::string describe(IntegerRange range);
std::string describe(NumberRange range);

}  // namespace specs
