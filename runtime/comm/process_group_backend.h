// The back ends of process groups: Gloo for tensors on CPUs, NCCL for tensors on GPUs.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include <c10/util/intrusive_ptr.h>

namespace c10d {
class Backend;
class Store;
}  // namespace c10d

namespace runtime {

struct BackendOptions {
  std::chrono::milliseconds timeout;
  std::string network_interface;  ///< empty: the back end chooses
};

/// Joins the group whose members meet in `store`; blocks until all are there.
c10::intrusive_ptr<c10d::Backend> make_gloo_backend(const c10::intrusive_ptr<c10d::Store>& store,
                                                    std::int64_t rank, std::int64_t size,
                                                    const BackendOptions& options);

}  // namespace runtime
