// A table that several threads fill and read.
#pragma once

#include <cstddef>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <utility>

namespace cost_models {

/// Remembers what was once computed, by keys with a `hash_value`; entries never move or change.
template <class Key, class Value>
class Memo {
 public:
  template <class Make>
  const Value& get(const Key& key, Make make) {
    {
      const std::shared_lock lock(mutex_);
      const auto found = values_.find(key);
      if (found != values_.end()) return found->second;
    }
    Value value = make();
    const std::unique_lock lock(mutex_);
    return values_.emplace(key, std::move(value)).first->second;
  }

 private:
  struct Hash {
    std::size_t operator()(const Key& key) const { return hash_value(key); }
  };
  std::shared_mutex mutex_;
  std::unordered_map<Key, Value, Hash> values_;
};

}  // namespace cost_models
