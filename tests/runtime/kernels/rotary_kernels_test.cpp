#include "runtime/kernels/rotary_kernels.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include "tests/runtime/kernels/kernel_checks.h"

namespace runtime::kernels {
namespace {

constexpr std::int64_t sequences = 2, length = 11;

struct Angles {
  at::Tensor cosine, sine;
};

Angles angles(std::int64_t half, at::ScalarType type) {
  const at::Tensor angle = random_matrix({length + 3, half}, at::kDouble);
  const at::ScalarType table = type == at::kDouble ? at::kDouble : at::kFloat;
  return {angle.cos().to(table), angle.sin().to(table)};
}

/// Out of place, by whole tensors.
at::Tensor composed(const at::Tensor& x, const Angles& by, int direction) {
  const std::int64_t half = by.cosine.size(1), rest = x.size(3) - 2 * half;
  const at::Tensor cosine = wide(by.cosine).narrow(0, 0, length).view({1, length, 1, half});
  const at::Tensor sine = wide(by.sine).narrow(0, 0, length).view({1, length, 1, half}).mul(direction);
  const at::Tensor first = wide(x).narrow(3, 0, half), second = wide(x).narrow(3, half, half);
  return at::cat({first.mul(cosine).sub(second.mul(sine)), second.mul(cosine).add(first.mul(sine)),
                  wide(x).narrow(3, 2 * half, rest)},
                 3);
}

TEST(RotaryKernels, TurnAViewAsTheCompositionDoesAndNothingBesideIt) {
  for (const auto& [type, bar] : precisions())
    for (const std::int64_t head_dim : {2, 10, 64})
      for (const std::int64_t half : {head_dim / 2, std::int64_t{1}})
        for (const int direction : {1, -1}) {
          // Three heads of seven in the rows of a projected matrix.
          const at::Tensor matrix = random_matrix({sequences, length, 7, head_dim}, type);
          const at::Tensor before = matrix.clone();
          const Angles by = angles(half, type);
          const at::Tensor view = matrix.narrow(2, 2, 3);
          rotate_heads(view, by.cosine, by.sine, direction);
          EXPECT_LE(distance(view, composed(before.narrow(2, 2, 3), by, direction)), bar)
              << c10::toString(type) << head_dim << " " << half;
          EXPECT_TRUE(matrix.narrow(2, 0, 2).equal(before.narrow(2, 0, 2)));
          EXPECT_TRUE(matrix.narrow(2, 5, 2).equal(before.narrow(2, 5, 2)));
        }
}

TEST(RotaryKernels, TurnBackWhatTheyTurned) {
  const at::Tensor x = random_matrix({sequences, length, 3, 10}, at::kDouble), before = x.clone();
  const Angles by = angles(5, at::kDouble);
  rotate_heads(x, by.cosine, by.sine, 1);
  EXPECT_GT(distance(x, before), 0.1);
  rotate_heads(x, by.cosine, by.sine, -1);
  EXPECT_LE(distance(x, before), 1e-14);
}

TEST(RotaryKernels, LeaveNoHeadsAlone) {
  const Angles by = angles(5, at::kFloat);
  rotate_heads(at::empty({0, length, 3, 10}, at::kFloat), by.cosine, by.sine, 1);
  rotate_heads(at::empty({sequences, length, 0, 10}, at::kFloat), by.cosine, by.sine, 1);
}

}  // namespace
}  // namespace runtime::kernels
