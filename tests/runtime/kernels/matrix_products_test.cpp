#include "runtime/kernels/matrix_products.h"

#include <limits>
#include <string>

#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include "runtime/kernels/tile_product.h"
#include "tests/runtime/kernels/kernel_checks.h"

namespace runtime::kernels {
namespace {

/// sum + leftᵀ · right of the same 16-bit numbers, in fp64.
at::Tensor composed(const at::Tensor& sum, const at::Tensor& left, const at::Tensor& right) {
  return wide(sum).add(wide(left).t().mm(wide(right)));
}

class AddedProducts : public testing::TestWithParam<at::ScalarType> {};

TEST_P(AddedProducts, AreNotRoundedWhateverTheShape) {
  for (const std::int64_t depth : {1, 32, 75, 300, 2080})
    for (const std::int64_t rows : {1, 16, 48, 272, 530})
      for (const std::int64_t columns : {1, 33, 64, 530}) {
        const at::Tensor sum = random_matrix({rows, columns}, at::kFloat);
        const at::Tensor left = random_matrix({depth, rows}, GetParam());
        const at::Tensor right = random_matrix({depth, columns}, GetParam());
        if (!can_accumulate_product(sum, left, right)) GTEST_SKIP() << "no such instructions";
        const at::Tensor expected = composed(sum, left, right);
        accumulate_product(sum, left, right);
        // Sums of `depth` products of order 1 in fp32: far below bf16's 2^-9 and fp16's 2^-12.
        EXPECT_LE(distance(sum, expected), 1e-4) << depth << " " << rows << " " << columns;
      }
}

TEST_P(AddedProducts, MayBeLargerThanFp16Holds) {
  const at::Tensor sum = at::zeros({64, 48}), left = at::full({32, 64}, 1024, GetParam());
  const at::Tensor right = at::full({32, 48}, 1024, GetParam());
  if (!can_accumulate_product(sum, left, right)) GTEST_SKIP() << "no such instructions";
  accumulate_product(sum, left, right);
  EXPECT_TRUE(sum.eq(32.0 * 1024 * 1024).all().item<bool>());
}

INSTANTIATE_TEST_SUITE_P(MatrixProducts, AddedProducts, testing::Values(at::kBFloat16, at::kHalf),
                         [](const auto& type) { return std::string(c10::toString(type.param)); });

/// Within half a unit in the type's last place of the same product in fp64, and what sums in fp32 lose.
void expect_rounded_once(const at::Tensor& found, const at::Tensor& expected, std::int64_t depth) {
  const double half_unit = found.scalar_type() == at::kBFloat16 ? 1.0 / 256 : 1.0 / 2048;
  const double bar = half_unit + 1e-6 * static_cast<double>(depth);
  EXPECT_LE(distance(found, expected), bar) << found.sizes() << " depth " << depth;
}

class LinearProducts : public testing::TestWithParam<at::ScalarType> {};

TEST_P(LinearProducts, AreRoundedOnceWhateverTheShape) {
  for (const std::int64_t depth : {1, 32, 75, 600})
    for (const std::int64_t rows : {1, 31, 64, 290})
      for (const std::int64_t columns : {1, 33, 530}) {
        const at::Tensor x = random_matrix({rows, depth}, GetParam());
        const at::Tensor weight = random_matrix({columns, depth}, GetParam());
        const at::Tensor bias = random_matrix({columns}, GetParam());
        const at::Tensor product = wide(x).mm(wide(weight).t());
        expect_rounded_once(multiply_by_transpose(x, weight), product, depth);
        expect_rounded_once(multiply_by_transpose(x, weight, bias), product.add(wide(bias)), depth);
        const at::Tensor right = weight.t().contiguous();
        expect_rounded_once(multiply_matrices(x, right), product, depth);
        EXPECT_EQ(multiply_matrices(x, right).scalar_type(), GetParam());
      }
}

TEST_P(LinearProducts, ReadViewsAndOtherStridesAlike) {
  const at::Tensor x = random_matrix({40, 70}, GetParam()), weight = random_matrix({50, 70}, GetParam());
  const at::Tensor expected = multiply_by_transpose(x, weight);
  const at::Tensor inside = random_matrix({60, 100}, GetParam());
  inside.narrow(0, 5, 40).narrow(1, 7, 70).copy_(x);
  EXPECT_TRUE(multiply_by_transpose(inside.narrow(0, 5, 40).narrow(1, 7, 70), weight).equal(expected));
  EXPECT_LE(distance(multiply_by_transpose(strided(x), weight), wide(expected)), 1.0 / 128);
  EXPECT_LE(distance(multiply_matrices(x, weight.t()), wide(expected)), 1.0 / 128);
}

INSTANTIATE_TEST_SUITE_P(MatrixProducts, LinearProducts, testing::Values(at::kBFloat16, at::kHalf),
                         [](const auto& type) { return std::string(c10::toString(type.param)); });

TEST(MatrixProducts, OfARowDoNotDependOnTheOthers) {
  const at::Tensor x = random_matrix({300, 600}, at::kBFloat16),
                   weight = random_matrix({90, 600}, at::kBFloat16);
  if (!has_tiles()) GTEST_SKIP() << "no matrix registers";
  const at::Tensor whole = multiply_by_transpose(x, weight);
  EXPECT_TRUE(multiply_by_transpose(x.narrow(0, 17, 41), weight).equal(whole.narrow(0, 17, 41)));
}

TEST(MatrixProducts, OfNothingAreEmptyOrZero) {
  const auto matrix = [](std::int64_t rows, std::int64_t columns) {
    return at::zeros({rows, columns}, at::kBFloat16);
  };
  EXPECT_EQ(multiply_by_transpose(matrix(0, 8), matrix(4, 8)).numel(), 0);
  EXPECT_EQ(multiply_matrices(matrix(3, 0), matrix(0, 5)).abs().sum().item<double>(), 0);
  const at::Tensor sum = at::ones({3, 5});
  if (can_accumulate_product(sum, matrix(0, 3), matrix(0, 5)))
    accumulate_product(sum, matrix(0, 3), matrix(0, 5));
  EXPECT_TRUE(sum.equal(at::ones({3, 5})));
}

TEST(MatrixProducts, CarryOnWhatIsNoNumber) {
  for (const double bad :
       {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    const at::Tensor x = random_matrix({40, 70}, at::kBFloat16);
    x[13][69] = bad;
    const at::Tensor y = multiply_by_transpose(x, at::ones({50, 70}, at::kBFloat16));
    EXPECT_FALSE(y[13].isfinite().any().item<bool>());
    EXPECT_EQ(y.isfinite().sum().item<std::int64_t>(), 39 * 50);
  }
}

TEST(MatrixProducts, LeavesWhatItCannotDoToOthers) {
  const at::Tensor sum = at::zeros({16, 8}), left = random_matrix({32, 16}, at::kBFloat16);
  const at::Tensor right = random_matrix({32, 8}, at::kBFloat16);
  EXPECT_FALSE(can_accumulate_product(sum.to(at::kBFloat16), left, right));
  EXPECT_FALSE(can_accumulate_product(sum, left.to(at::kFloat), right.to(at::kFloat)));
  EXPECT_FALSE(can_accumulate_product(sum, left, right.to(at::kHalf)));
  EXPECT_FALSE(can_accumulate_product(sum, left.to(at::kHalf), right));
  EXPECT_FALSE(can_accumulate_product(sum, strided(left), right));
  EXPECT_FALSE(can_accumulate_product(sum, left, strided(right)));
}

}  // namespace
}  // namespace runtime::kernels
