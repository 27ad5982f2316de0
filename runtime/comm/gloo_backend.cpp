// The one source that sees ProcessGroupGloo. It must never name or instantiate ProcessGroupGloo::GlooStore:
// that inline class derives from a Gloo interface that lives, with its own layout, inside libtorch_cpu.
#include <cstdlib>
#include <utility>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "runtime/comm/native_store.h"
#include "runtime/comm/process_group.h"

namespace runtime {
namespace {

/// One device (socket address and event thread) serves all groups of the process.
class GlooFactory final : public BackendFactory {
 public:
  explicit GlooFactory(const CommunicationOptions& options) : timeout_(options.timeout) {
    std::string interface = options.network_interface;
    if (const char* name = std::getenv("GLOO_SOCKET_IFNAME"); interface.empty() && name != nullptr)
      interface = name;
    device_ = interface.empty() ? c10d::ProcessGroupGloo::createDefaultDevice()
                                : c10d::ProcessGroupGloo::createDeviceForInterface(interface);
  }

  c10::intrusive_ptr<c10d::Backend> make(const NativeStore& store, const std::string& name, std::int64_t rank,
                                         std::int64_t size) override {
    auto options = c10d::ProcessGroupGloo::Options::create();
    options->devices.push_back(device_);
    options->timeout = timeout_;
    options->threads = 2;
    return c10::make_intrusive<c10d::ProcessGroupGloo>(
        c10::make_intrusive<c10d::PrefixStore>(name, store.store), static_cast<int>(rank),
        static_cast<int>(size), std::move(options));
  }

 private:
  std::chrono::milliseconds timeout_;
  std::shared_ptr<::gloo::transport::Device> device_;
};

}  // namespace

std::shared_ptr<BackendFactory> make_gloo_factory(const CommunicationOptions& options) {
  return std::make_shared<GlooFactory>(options);
}

}  // namespace runtime
