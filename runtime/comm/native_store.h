// The c10d store behind a Rendezvous; only the back ends need it.
#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

namespace runtime {

struct NativeStore {
  c10::intrusive_ptr<c10d::Store> store;
};

}  // namespace runtime
