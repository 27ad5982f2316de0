#include "runtime/comm/rendezvous.h"

#include <exception>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "runtime/comm/native_store.h"

namespace runtime {
namespace {

std::shared_ptr<NativeStore> open_store(const RendezvousAddress& address, bool host,
                                        std::chrono::milliseconds timeout, std::uint16_t& port) {
  c10d::TCPStoreOptions options;
  options.port = address.port;
  options.isServer = host;
  options.waitWorkers = false;
  options.timeout = timeout;
  try {
    auto store = c10::make_intrusive<c10d::TCPStore>(address.host, options);
    port = store->getPort();
    return std::make_shared<NativeStore>(NativeStore{std::move(store)});
  } catch (const std::exception& error) {
    const std::string text = error.what();
    throw std::runtime_error(fmt::format("cannot {} the rendezvous at {}:{}: {}", host ? "open" : "reach",
                                         address.host, address.port, text.substr(0, text.find('\n'))));
  }
}

}  // namespace

Rendezvous::Rendezvous(RendezvousAddress address, std::shared_ptr<NativeStore> native)
    : address_(std::move(address)), native_(std::move(native)) {}

Rendezvous Rendezvous::host(const RendezvousAddress& address, std::chrono::milliseconds timeout) {
  RendezvousAddress taken = address;
  auto store = open_store(address, true, timeout, taken.port);
  return {std::move(taken), std::move(store)};
}

Rendezvous Rendezvous::connect(const RendezvousAddress& address, std::chrono::milliseconds timeout) {
  RendezvousAddress taken = address;
  auto store = open_store(address, false, timeout, taken.port);
  return {std::move(taken), std::move(store)};
}

Rendezvous Rendezvous::under(const std::string& prefix) const {
  return {address_, std::make_shared<NativeStore>(
                        NativeStore{c10::make_intrusive<c10d::PrefixStore>(prefix, native_->store)})};
}

void Rendezvous::set(const std::string& key, const std::string& value) const {
  native_->store->set(key, std::vector<std::uint8_t>(value.begin(), value.end()));
}

std::optional<std::string> Rendezvous::get(const std::string& key, std::chrono::milliseconds timeout) const {
  try {
    native_->store->wait({key}, timeout);
    const std::vector<std::uint8_t> bytes = native_->store->get(key);
    return std::string(bytes.begin(), bytes.end());
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

bool Rendezvous::has(const std::string& key) const { return native_->store->check({key}); }

std::int64_t Rendezvous::add(const std::string& key, std::int64_t amount) const {
  return native_->store->add(key, amount);
}

}  // namespace runtime
