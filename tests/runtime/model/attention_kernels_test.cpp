#include "runtime/model/attention_kernels.h"

#include <algorithm>

#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

namespace runtime {
namespace {

constexpr std::int64_t tokens = 150;  // two whole blocks of queries and a part of one

AttentionInputs random_inputs(at::ScalarType type) {
  const auto heads = [&] { return at::randn({2, tokens, 3, 8}, at::kDouble).to(type).transpose(1, 2); };
  return {heads(), heads(), heads()};
}

/// A mask of the weights' positions, as the real one is.
WeightDropout dropout_by(const at::Tensor& mask) {
  return [mask](const at::Tensor& weights, std::int64_t first_query) {
    weights.mul_(mask.narrow(0, first_query, weights.size(2)).narrow(1, 0, weights.size(3)));
  };
}

double distance(const at::Tensor& a, const at::Tensor& b) {
  return a.to(at::kDouble).sub(b.to(at::kDouble)).abs().max().item<double>();
}

double distance(const AttentionInputs& a, const AttentionInputs& b) {
  return std::max({distance(a.queries, b.queries), distance(a.keys, b.keys), distance(a.values, b.values)});
}

TEST(AttentionKernels, BlocksWithoutDropoutAreTheFusedKernel) {
  const AttentionInputs inputs = random_inputs(at::kDouble);
  const at::Tensor gradient = random_inputs(at::kDouble).queries;
  const FusedAttention fused = fused_attention(inputs), blocks = blockwise_attention(inputs, {});
  EXPECT_LE(distance(fused.output, blocks.output), 1e-13);
  EXPECT_LE(distance(fused.log_sum_exp, blocks.log_sum_exp), 1e-13);
  EXPECT_LE(distance(fused_attention_backward(inputs, fused, gradient),
                     blockwise_attention_backward(inputs, blocks, gradient, {})),
            1e-12);
}

TEST(AttentionKernels, BlocksWithDropoutAreTheWholeMatrixWithTheSameMask) {
  const AttentionInputs inputs = random_inputs(at::kDouble);
  const at::Tensor gradient = random_inputs(at::kDouble).queries;
  const WeightDropout dropout =
      dropout_by(at::rand({tokens, tokens}, at::kDouble).gt(0.2).to(at::kDouble).div_(0.8));
  const FusedAttention blocks = blockwise_attention(inputs, dropout);
  const at::Tensor weights = attention_weights(inputs);
  EXPECT_LE(distance(blocks.output, unfused_attention(weights, inputs.values, dropout)), 1e-13);
  const AttentionInputs found = blockwise_attention_backward(inputs, blocks, gradient, dropout);
  EXPECT_LE(distance(found, unfused_attention_backward(inputs, weights, gradient, dropout)), 1e-12);
  EXPECT_GT(distance(blocks.output, blockwise_attention(inputs, {}).output), 0.01);
}

TEST(AttentionKernels, SixteenBitsStayCloseToSixtyFour) {
  for (const at::ScalarType type : {at::kBFloat16, at::kHalf}) {
    SCOPED_TRACE(c10::toString(type));
    const AttentionInputs narrow = random_inputs(type);
    const AttentionInputs wide{narrow.queries.to(at::kDouble), narrow.keys.to(at::kDouble),
                               narrow.values.to(at::kDouble)};
    const at::Tensor gradient = random_inputs(type).queries;
    const FusedAttention expected = fused_attention(wide);
    const AttentionInputs gradients = fused_attention_backward(wide, expected, gradient.to(at::kDouble));
    const FusedAttention fused = fused_attention(narrow);
    EXPECT_EQ(fused.output.scalar_type(), type);
    EXPECT_LE(distance(fused.output, expected.output), 0.02);
    EXPECT_LE(distance(fused.log_sum_exp, expected.log_sum_exp), 0.01);
    EXPECT_LE(distance(fused_attention_backward(narrow, fused, gradient), gradients), 0.1);
    const FusedAttention blocks = blockwise_attention(narrow, {});
    EXPECT_LE(distance(blocks.output, expected.output), 0.02);
    EXPECT_LE(distance(blockwise_attention_backward(narrow, blocks, gradient, {}), gradients), 0.1);
    const at::Tensor weights = attention_weights(narrow);
    EXPECT_LE(distance(unfused_attention(weights, narrow.values, {}), expected.output), 0.03);
    EXPECT_LE(distance(unfused_attention_backward(narrow, weights, gradient, {}), gradients), 0.1);
  }
}

}  // namespace
}  // namespace runtime
