// Inputs of the kernels' tests, and distances from what LibTorch's own operators compute in fp64.
#pragma once

#include <vector>

#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

namespace runtime::kernels {

/// In which the kernels work, and how far a result of order 1 may lie from the fp64 one.
struct Precision {
  at::ScalarType type;
  double bar;
};

inline const std::vector<Precision>& precisions() {
  static const std::vector<Precision> all{
      {at::kDouble, 1e-13}, {at::kFloat, 4e-6}, {at::kHalf, 2e-3}, {at::kBFloat16, 1.6e-2}};
  return all;
}

/// Random numbers that the type holds exactly, so that all precisions begin with the same ones.
inline at::Tensor random_matrix(at::IntArrayRef shape, at::ScalarType type) { return at::randn(shape, type); }

/// The same numbers behind other strides.
inline at::Tensor strided(const at::Tensor& matrix) { return matrix.t().contiguous().t(); }

inline at::Tensor wide(const at::Tensor& tensor) { return tensor.to(at::kDouble); }

/// The largest difference as a share of the expected values' size, which counts as 1 at least.
inline double distance(const at::Tensor& found, const at::Tensor& expected) {
  EXPECT_EQ(found.sizes(), expected.sizes());
  if (expected.numel() == 0) return 0;
  const at::Tensor scale = wide(expected).abs().clamp_min_(1);
  return wide(found).sub(wide(expected)).abs().div_(scale).max().item<double>();
}

}  // namespace runtime::kernels
