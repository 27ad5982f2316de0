#include "runtime/kernels/tile_attention.h"

#include <limits>

#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/ops/empty.h>

#include "tests/runtime/kernels/kernel_checks.h"

namespace runtime::kernels {
namespace {

struct Size {
  std::int64_t sequences, heads, length, dim;
};

/// Queries, keys and values as views into one projected matrix, as a model has them.
TileAttention random_heads(const Size& size) {
  const at::Tensor projected =
      random_matrix({size.sequences, size.length, 3 * size.heads, size.dim}, at::kBFloat16);
  const auto part = [&](std::int64_t index) {
    return projected.narrow(2, index * size.heads, size.heads).transpose(1, 2);
  };
  return {part(0), part(1), part(2)};
}

struct Attended {
  at::Tensor output, log_sum_exp;
};

Attended attend(const TileAttention& inputs) {
  const at::Tensor& q = inputs.queries;
  const Attended result{at::empty({q.size(0), q.size(2), q.size(1), q.size(3)}, q.options()).transpose(1, 2),
                        at::empty({q.size(0), q.size(1), q.size(2)}, at::kFloat)};
  attend_through_tiles(inputs, result.output, result.log_sum_exp);
  return result;
}

TileAttention backpropagate(const TileAttention& inputs, const Attended& forward,
                            const at::Tensor& gradient) {
  const auto like = [](const at::Tensor& heads) { return at::empty(heads.sizes(), heads.options()); };
  const TileAttention result{like(inputs.queries), like(inputs.keys), like(inputs.values)};
  attend_through_tiles_backward(inputs, forward.output, forward.log_sum_exp, gradient, result);
  return result;
}

/// ‖found − expected‖ / ‖expected‖.
double relative(const at::Tensor& found, const at::Tensor& expected) {
  EXPECT_EQ(found.sizes(), expected.sizes());
  return (wide(found).sub(wide(expected)).norm() / wide(expected).norm().clamp_min(1e-30)).item<double>();
}

const std::vector<Size> sizes{{2, 3, 1, 64},  {1, 2, 31, 64},  {2, 2, 33, 32},  {1, 2, 64, 128},
                              {1, 3, 150, 8}, {1, 1, 300, 40}, {2, 1, 256, 64}, {1, 1, 577, 80}};

TEST(TileAttention, IsCausalAttentionInFp64RoundedWhateverTheShape) {
  for (const Size& size : sizes) {
    const TileAttention inputs = random_heads(size);
    if (!goes_through_tiles(inputs)) GTEST_SKIP() << "no matrix registers";
    const Attended found = attend(inputs);
    const at::Tensor q = wide(inputs.queries), k = wide(inputs.keys), v = wide(inputs.values);
    const auto [output, log_sum_exp] = at::_scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, true);
    EXPECT_LE(relative(found.output, output), 4e-3) << size.length << " " << size.dim;
    EXPECT_LE(distance(found.log_sum_exp, log_sum_exp), 1e-5) << size.length << " " << size.dim;
    const at::Tensor gradient = random_heads(size).values;
    const TileAttention gradients = backpropagate(inputs, found, gradient);
    const auto [dq, dk, dv] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
        wide(gradient), q, k, v, output, log_sum_exp, 0.0, true);
    EXPECT_LE(relative(gradients.values, dv), 6e-3) << size.length << " " << size.dim;
    if (size.length == 1) {  // a softmax over one key has no slope
      EXPECT_LE(distance(gradients.queries, dq), 0.05);
      EXPECT_LE(distance(gradients.keys, dk), 0.05);
      continue;
    }
    EXPECT_LE(relative(gradients.queries, dq), 8e-3) << size.length << " " << size.dim;
    EXPECT_LE(relative(gradients.keys, dk), 8e-3) << size.length << " " << size.dim;
  }
}

TEST(TileAttention, ReadsOtherStridesAlike) {
  const TileAttention inputs = random_heads({2, 2, 70, 32});
  if (!goes_through_tiles(inputs)) GTEST_SKIP() << "no matrix registers";
  const TileAttention dense{inputs.queries.contiguous(), inputs.keys.contiguous(),
                            inputs.values.contiguous()};
  const Attended a = attend(inputs), b = attend(dense);
  EXPECT_TRUE(a.output.equal(b.output));
  const at::Tensor gradient = random_heads({2, 2, 70, 32}).keys;
  const TileAttention x = backpropagate(inputs, a, gradient),
                      y = backpropagate(dense, b, gradient.contiguous());
  EXPECT_TRUE(x.queries.equal(y.queries) && x.keys.equal(y.keys) && x.values.equal(y.values));
  EXPECT_FALSE(goes_through_tiles({inputs.queries.transpose(2, 3), inputs.keys, inputs.values}));
  EXPECT_FALSE(goes_through_tiles({wide(inputs.queries), wide(inputs.keys), wide(inputs.values)}));
}

TEST(TileAttention, OfAHeadDoesNotDependOnTheOthersNorOnLaterTokens) {
  const TileAttention inputs = random_heads({2, 3, 330, 64});
  if (!goes_through_tiles(inputs)) GTEST_SKIP() << "no matrix registers";
  const Attended whole = attend(inputs);
  const auto part = [](const at::Tensor& heads) { return heads.narrow(0, 1, 1).narrow(1, 2, 1); };
  const TileAttention one{part(inputs.queries), part(inputs.keys), part(inputs.values)};
  EXPECT_TRUE(attend(one).output.equal(part(whole.output)));
  const auto begin = [](const at::Tensor& heads) { return heads.narrow(2, 0, 270); };
  const TileAttention earlier{begin(inputs.queries), begin(inputs.keys), begin(inputs.values)};
  EXPECT_TRUE(attend(earlier).output.equal(begin(whole.output)));
}

TEST(TileAttention, CarriesOnWhatIsNoNumber) {
  const TileAttention inputs = random_heads({1, 1, 70, 32});
  if (!goes_through_tiles(inputs)) GTEST_SKIP() << "no matrix registers";
  inputs.keys[0][0][40][3] = std::numeric_limits<double>::quiet_NaN();
  const Attended found = attend(inputs);
  EXPECT_TRUE(found.output.narrow(2, 0, 32).isfinite().all().item<bool>());
  EXPECT_FALSE(found.output.narrow(2, 40, 30).isfinite().any().item<bool>());
}

TEST(TileAttention, KeepsItsFootingWithLargeScores) {
  const TileAttention inputs = random_heads({1, 1, 300, 64});
  if (!goes_through_tiles(inputs)) GTEST_SKIP() << "no matrix registers";
  inputs.queries.mul_(200);
  const Attended found = attend(inputs);
  const auto [output, log_sum_exp] = at::_scaled_dot_product_flash_attention_for_cpu(
      wide(inputs.queries), wide(inputs.keys), wide(inputs.values), 0.0, true);
  EXPECT_LE(relative(found.output, output), 4e-3);
  EXPECT_LE(distance(found.log_sum_exp, log_sum_exp), 1e-5);
}

}  // namespace
}  // namespace runtime::kernels
