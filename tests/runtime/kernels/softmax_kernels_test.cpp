#include "runtime/kernels/softmax_kernels.h"

#include <cmath>
#include <limits>

#include <ATen/ops/empty.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <torch/csrc/autograd/autograd.h>

#include "runtime/kernels/vector_math.h"
#include "tests/runtime/kernels/kernel_checks.h"

namespace runtime::kernels {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

TEST(SoftmaxKernels, LossAndGradientAreThoseOfTheLogSoftmaxInEveryPrecision) {
  for (const auto& [type, bar] : precisions())
    for (const std::int64_t rows : {1, 7, 33})
      for (const std::int64_t columns : {1, 13, 64, 1031}) {
        const at::Tensor logits = random_matrix({rows, columns}, type).mul_(3);
        const at::Tensor target = at::randint(columns, {rows}, at::kLong);
        const at::ScalarType statistics_type = type == at::kDouble ? at::kDouble : at::kFloat;
        const at::Tensor weight = at::rand({rows}, statistics_type);

        const at::Tensor leaf = wide(logits).requires_grad_();
        const at::Tensor log = leaf.log_softmax(1).gather(1, target.unsqueeze(1)).squeeze(1);
        torch::autograd::backward({log.neg().mul(wide(weight)).sum()});

        const RowStatistics row = row_statistics(logits, target);
        const at::Tensor found = row.target.sub(row.maximum).sub(row.exponentials.log());
        EXPECT_LE(distance(found, log.detach()), std::min(bar, 3e-6)) << c10::toString(type) << columns;
        turn_into_gradient(logits, target, row.maximum, weight.div(row.exponentials), weight);
        EXPECT_LE(distance(logits, leaf.grad()), bar) << c10::toString(type) << columns;
      }
}

TEST(SoftmaxKernels, PutStatisticsOfColumnsOnTwoRanksTogether) {
  const at::Tensor logits = random_matrix({5, 90}, at::kDouble);
  const at::Tensor none = at::full({5}, -1, at::kLong);
  const RowStatistics whole = row_statistics(logits, none);
  const RowStatistics left = row_statistics(logits.narrow(1, 0, 40), none);
  const RowStatistics right = row_statistics(logits.narrow(1, 40, 50), none);
  EXPECT_TRUE(left.maximum.maximum(right.maximum).equal(whole.maximum));
  const at::Tensor sum = left.exponentials.mul(left.maximum.sub(whole.maximum).exp())
                             .add(right.exponentials.mul(right.maximum.sub(whole.maximum).exp()));
  EXPECT_LE(distance(sum, whole.exponentials), 1e-13);
  EXPECT_EQ(whole.target.abs().sum().item<double>(), 0);
}

TEST(SoftmaxKernels, LeavePaddingAndTargetsElsewhereWithoutWeight) {
  const at::Tensor logits = random_matrix({3, 70}, at::kFloat);
  logits.narrow(1, 60, 10).fill_(-infinity);
  const at::Tensor elsewhere = at::full({3}, -1, at::kLong), weight = at::ones({3});
  const RowStatistics row = row_statistics(logits, elsewhere);
  const at::Tensor softmax = wide(logits).softmax(1);
  turn_into_gradient(logits, elsewhere, row.maximum, weight.div(row.exponentials), weight);
  EXPECT_LE(distance(logits, softmax), 1e-6);
  EXPECT_EQ(logits.narrow(1, 60, 10).abs().sum().item<double>(), 0);
}

TEST(SoftmaxKernels, OfNothingButPaddingAreZero) {
  const at::Tensor logits = at::full({2, 9}, -infinity, at::kFloat);
  const RowStatistics row = row_statistics(logits, at::full({2}, -1, at::kLong));
  EXPECT_TRUE(row.maximum.equal(at::full({2}, -infinity, at::kFloat)));
  EXPECT_EQ(row.exponentials.sum().item<double>(), 0);
}

TEST(SoftmaxKernels, CarryOnWhatIsNoNumber) {
  for (const std::int64_t columns : {9, 200}) {
    const at::Tensor logits = random_matrix({1, columns}, at::kFloat);
    logits.narrow(1, columns / 2, 1).fill_(std::numeric_limits<double>::quiet_NaN());
    const RowStatistics row = row_statistics(logits, at::full({1}, 0, at::kLong));
    EXPECT_TRUE(std::isnan(row.exponentials.item<float>())) << columns;
  }
}

TEST(SoftmaxKernels, GiveNothingForNoRowsAndReadAnyStrides) {
  EXPECT_EQ(row_statistics(at::empty({0, 9}, at::kFloat), at::empty({0}, at::kLong)).maximum.numel(), 0);
  const at::Tensor logits = random_matrix({6, 70}, at::kFloat), target = at::randint(70, {6}, at::kLong);
  EXPECT_TRUE(row_statistics(strided(logits), target)
                  .exponentials.equal(row_statistics(logits, target).exponentials));
}

TEST(VectorMath, TheExponentialIsWithinTwoUnitsInTheLastPlace) {
  double worst = 0;
  for (float x = -86.9F; x < 87.9F; x += 0.00037F) {
    const double exact = std::exp(static_cast<double>(x));
    const auto unit = static_cast<double>(std::nextafter(static_cast<float>(exact), INFINITY)) -
                      static_cast<double>(static_cast<float>(exact));
    worst = std::max(worst, std::abs(static_cast<double>(exponential(x)) - exact) / unit);
  }
  EXPECT_LE(worst, 2);
  EXPECT_EQ(exponential(-200.F), 0);
  EXPECT_EQ(exponential(0.F), 1);
  EXPECT_TRUE(std::isnan(exponential(std::numeric_limits<float>::quiet_NaN())));
}

}  // namespace
}  // namespace runtime::kernels
