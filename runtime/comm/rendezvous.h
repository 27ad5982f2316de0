// Where the ranks of a job find each other: a TCP store that one process hosts and all connect to.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace runtime {

/// The c10d store itself (runtime/comm/native_store.h), for the back ends.
struct NativeStore;

struct RendezvousAddress {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;  ///< 0 when hosting: any free port
};

/// A connection to the store. Errors: std::runtime_error with one line that names host and port.
class Rendezvous {
 public:
  /// Opens the store; the address then has the port that was taken.
  static Rendezvous host(const RendezvousAddress& address, std::chrono::milliseconds timeout);
  static Rendezvous connect(const RendezvousAddress& address, std::chrono::milliseconds timeout);
  /// The same store, keys under `prefix` (one per restart, so that no key is stale).
  Rendezvous under(const std::string& prefix) const;

  const RendezvousAddress& address() const { return address_; }
  const std::shared_ptr<NativeStore>& native() const { return native_; }

  void set(const std::string& key, const std::string& value) const;
  /// Blocks until the key is there; nothing after `timeout`.
  std::optional<std::string> get(const std::string& key, std::chrono::milliseconds timeout) const;
  /// Whether the key is there now.
  bool has(const std::string& key) const;
  /// Adds to a counter and returns its new value.
  std::int64_t add(const std::string& key, std::int64_t amount) const;

 private:
  Rendezvous(RendezvousAddress address, std::shared_ptr<NativeStore> native);

  RendezvousAddress address_;
  std::shared_ptr<NativeStore> native_;
};

}  // namespace runtime
