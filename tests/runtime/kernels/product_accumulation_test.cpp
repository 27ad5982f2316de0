#include "runtime/kernels/product_accumulation.h"

#include <ATen/ops/zeros.h>

#include "tests/runtime/kernels/kernel_checks.h"

namespace runtime::kernels {
namespace {

/// sum + leftᵀ · right of the same bf16 numbers, in fp64.
at::Tensor composed(const at::Tensor& sum, const at::Tensor& left, const at::Tensor& right) {
  return wide(sum).add(wide(left).t().mm(wide(right)));
}

TEST(ProductAccumulation, AddsTheProductUnroundedWhateverTheShape) {
  for (const std::int64_t depth : {32, 96, 2048, 2080})
    for (const std::int64_t rows : {16, 48, 272})
      for (const std::int64_t columns : {1, 33, 64, 130}) {
        const at::Tensor sum = random_matrix({rows, columns}, at::kFloat);
        const at::Tensor left = random_matrix({depth, rows}, at::kBFloat16);
        const at::Tensor right = random_matrix({depth, columns}, at::kBFloat16);
        if (!can_accumulate_product(sum, left, right)) GTEST_SKIP() << "no bf16 matrix instructions";
        const at::Tensor expected = composed(sum, left, right);
        accumulate_product(sum, left, right);
        // Sums of `depth` products of order 1 in fp32: far below bf16's 2^-9.
        EXPECT_LE(distance(sum, expected), 6e-5) << depth << " " << rows << " " << columns;
      }
}

TEST(ProductAccumulation, LeavesWhatItCannotDoToOthers) {
  const at::Tensor sum = at::zeros({16, 8}), left = random_matrix({32, 16}, at::kBFloat16);
  const at::Tensor right = random_matrix({32, 8}, at::kBFloat16);
  EXPECT_FALSE(can_accumulate_product(sum.to(at::kBFloat16), left, right));
  EXPECT_FALSE(can_accumulate_product(sum, left.to(at::kFloat), right.to(at::kFloat)));
  EXPECT_FALSE(can_accumulate_product(sum, strided(left), right));
  EXPECT_FALSE(can_accumulate_product(sum, left, strided(right)));
}

}  // namespace
}  // namespace runtime::kernels
