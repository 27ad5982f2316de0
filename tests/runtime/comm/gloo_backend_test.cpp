#include <chrono>

#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "runtime/comm/process_group_backend.h"

TEST(GlooBackend, ReducesOverAGroupOfOneProcess) {
  auto backend = runtime::make_gloo_backend(c10::make_intrusive<c10d::HashStore>(), 0, 1,
                                            {.timeout = std::chrono::seconds(10), .network_interface = "lo"});
  std::vector<at::Tensor> tensors{at::full({3}, 2.0)};
  backend->allreduce(tensors)->wait();
  EXPECT_TRUE(at::equal(tensors.front(), at::full({3}, 2.0)));
}
