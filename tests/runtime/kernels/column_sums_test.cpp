#include "runtime/kernels/column_sums.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>

#include "tests/runtime/kernels/kernel_checks.h"

namespace runtime::kernels {
namespace {

at::ScalarType sum_type(at::ScalarType type) { return type == at::kDouble ? at::kDouble : at::kFloat; }

TEST(ColumnSums, AddUpInFp32OrFp64WhateverTheShape) {
  for (const auto& [type, bar] : precisions())
    for (const std::int64_t rows : {1, 3, 255, 1030})
      for (const std::int64_t columns : {1, 70, 1024, 2500}) {
        const at::Tensor x = random_matrix({rows, columns}, type);
        const at::Tensor sum = random_matrix({columns}, sum_type(type));
        const at::Tensor expected = wide(sum).add(wide(x).sum(0));
        add_column_sums(sum, x);
        EXPECT_LE(distance(sum, expected), type == at::kDouble ? 1e-12 : 2e-5) << type << rows << columns;
      }
}

TEST(ColumnSums, ReadAnyStrides) {
  const at::Tensor x = random_matrix({9, 13}, at::kBFloat16);
  const at::Tensor sum = at::ones({13}), same = at::ones({13});
  add_column_sums(sum, x);
  add_column_sums(same, strided(x));
  EXPECT_TRUE(sum.equal(same));
}

TEST(ColumnSums, OfNoRowsChangeNothing) {
  const at::Tensor sum = at::ones({5});
  add_column_sums(sum, at::empty({0, 5}, at::kBFloat16));
  EXPECT_TRUE(sum.equal(at::ones({5})));
}

}  // namespace
}  // namespace runtime::kernels
