#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "runtime/comm/process_group_backend.h"

namespace runtime {

c10::intrusive_ptr<c10d::Backend> make_gloo_backend(const c10::intrusive_ptr<c10d::Store>& store,
                                                    std::int64_t rank, std::int64_t size,
                                                    const BackendOptions& options) {
  auto gloo_options = c10d::ProcessGroupGloo::Options::create(options.timeout);
  gloo_options->devices.push_back(
      options.network_interface.empty()
          ? c10d::ProcessGroupGloo::createDefaultDevice()
          : c10d::ProcessGroupGloo::createDeviceForInterface(options.network_interface));
  return c10::make_intrusive<c10d::ProcessGroupGloo>(store, static_cast<int>(rank), static_cast<int>(size),
                                                     gloo_options);
}

}  // namespace runtime
