#include "runtime/kernels/matrix_products.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>

#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/mm.h>
#include <c10/util/Exception.h>

#include "runtime/kernels/tile_product.h"

// MKL's, which LibTorch for x86 carries and no header of it declares; absent elsewhere.
#define DSPLAN_WIDENING_PRODUCT(name)                                                                   \
  extern "C" [[gnu::weak]] void name(int layout, int transpose_left, int transpose_right, int m, int n, \
                                     int k, float factor, const void* left, int left_stride,            \
                                     const void* right, int right_stride, float sum_factor, float* sum, \
                                     int sum_stride)
DSPLAN_WIDENING_PRODUCT(cblas_gemm_bf16bf16f32);
DSPLAN_WIDENING_PRODUCT(cblas_gemm_f16f16f32);
#undef DSPLAN_WIDENING_PRODUCT

namespace runtime::kernels {

namespace {

// Of CBLAS.
constexpr int row_major = 101, as_it_is = 111, transposed = 112;

using WideningProduct = decltype(&cblas_gemm_bf16bf16f32);

/// MKL's for operands of this type; null where there is none that is faster than LibTorch's.
WideningProduct widening_product(at::ScalarType type) {
#if defined(__x86_64__) && defined(__GNUC__)
  static const bool has_bf16 = __builtin_cpu_supports("avx512bf16");
  if (type == at::kBFloat16) return has_bf16 ? cblas_gemm_bf16bf16f32 : nullptr;
  // Where the processor has no fp16 arithmetic, MKL works in fp32, LibTorch one element at a time.
  if (type == at::kHalf) return cblas_gemm_f16f16f32;
#endif
  return nullptr;
}

bool multiplies_on_tiles(at::ScalarType type) { return type == at::kBFloat16 && has_tiles(); }

bool fits(std::int64_t size) { return size <= std::numeric_limits<int>::max(); }

bool goes_through_tiles(const at::Tensor& matrix) {
  return matrix.scalar_type() == at::kBFloat16 && matrix.numel() > 0 &&
         (matrix.stride(1) == 1 || matrix.size(1) == 1);
}

TileOperand operand(const at::Tensor& matrix, bool rows_are_depth) {
  return {matrix.const_data_ptr<c10::BFloat16>(), matrix.stride(0), rows_are_depth};
}

at::Tensor multiply_rounded(const TileOperand& left, const TileOperand& right, const TileSizes& sizes,
                            const at::Tensor& bias, const at::TensorOptions& options) {
  at::Tensor result = at::empty({sizes.rows, sizes.columns}, options);
  TileResult out;
  out.rounded = result.data_ptr<c10::BFloat16>();
  out.row_stride = sizes.columns;
  if (bias.defined()) out.bias = bias.const_data_ptr<c10::BFloat16>();
  multiply_tiles(left, right, sizes, out);
  return result;
}

/// For a product of fp16 matrices whose rows lie each in one piece.
bool goes_through_sums(const at::Tensor& matrix) {
  return matrix.scalar_type() == at::kHalf && widening_product(at::kHalf) != nullptr && matrix.numel() > 0 &&
         (matrix.stride(1) == 1 || matrix.size(1) == 1) && matrix.stride(0) >= matrix.size(1) &&
         fits(matrix.stride(0)) && fits(matrix.size(0));
}

/// left · right + bias by blocks: the sums of one in fp32, then rounded. `right_form` is one of CBLAS's.
/// Scratch: 256 KiB.
at::Tensor multiply_through_sums(const at::Tensor& left, const at::Tensor& right, int right_form,
                                 const at::Tensor& bias) {
  constexpr std::int64_t block = 256;
  const bool turned = right_form == transposed;
  const std::int64_t rows = left.size(0), columns = right.size(turned ? 0 : 1);
  const auto *from_left = left.const_data_ptr<c10::Half>(), *from_right = right.const_data_ptr<c10::Half>();
  const int k = static_cast<int>(left.size(1));
  const int left_stride = static_cast<int>(left.stride(0)), right_stride = static_cast<int>(right.stride(0));
  at::Tensor result = at::empty({rows, columns}, left.options());
  const at::Tensor wide_bias = bias.defined() ? bias.to(at::kFloat) : at::Tensor();
  const auto sums = std::make_unique_for_overwrite<float[]>(block * block);
  for (std::int64_t column = 0; column < columns; column += block)
    for (std::int64_t row = 0; row < rows; row += block) {
      const std::int64_t m = std::min(block, rows - row), n = std::min(block, columns - column);
      widening_product(at::kHalf)(row_major, as_it_is, right_form, static_cast<int>(m), static_cast<int>(n),
                                  k, 1, from_left + row * left_stride, left_stride,
                                  from_right + (turned ? column * right_stride : column), right_stride, 0,
                                  sums.get(), static_cast<int>(n));
      const at::Tensor product = at::from_blob(sums.get(), {m, n}, at::kFloat);
      if (bias.defined()) product.add_(wide_bias.narrow(0, column, n));
      result.narrow(0, row, m).narrow(1, column, n).copy_(product);
    }
  return result;
}

}  // namespace

at::Tensor multiply_by_transpose(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  if (has_tiles() && goes_through_tiles(x) && goes_through_tiles(weight) &&
      (!bias.defined() || bias.is_contiguous()))
    return multiply_rounded(operand(x, false), operand(weight, false), {x.size(0), weight.size(0), x.size(1)},
                            bias, x.options());
  if (goes_through_sums(x) && goes_through_sums(weight))
    return multiply_through_sums(x, weight, transposed, bias);
  return bias.defined() ? at::addmm(bias, x, weight.t()) : x.mm(weight.t());
}

at::Tensor multiply_matrices(const at::Tensor& left, const at::Tensor& right) {
  if (has_tiles() && goes_through_tiles(left) && goes_through_tiles(right))
    return multiply_rounded(operand(left, false), operand(right, true),
                            {left.size(0), right.size(1), left.size(1)}, at::Tensor(), left.options());
  if (goes_through_sums(left) && goes_through_sums(right))
    return multiply_through_sums(left, right, as_it_is, {});
  return left.mm(right);
}

bool can_accumulate_product(const at::Tensor& sum, const at::Tensor& left, const at::Tensor& right) {
  const at::ScalarType type = left.scalar_type();
  return (multiplies_on_tiles(type) || widening_product(type) != nullptr) &&
         sum.scalar_type() == at::kFloat && right.scalar_type() == type && sum.is_contiguous() &&
         left.is_contiguous() && right.is_contiguous() && fits(left.size(0)) && fits(left.size(1)) &&
         fits(right.size(1));
}

void accumulate_product(const at::Tensor& sum, const at::Tensor& left, const at::Tensor& right) {
  TORCH_INTERNAL_ASSERT(can_accumulate_product(sum, left, right));
  const std::int64_t rows = left.size(1), columns = right.size(1), depth = left.size(0);
  if (rows == 0 || columns == 0 || depth == 0) return;
  if (multiplies_on_tiles(left.scalar_type())) {
    TileResult out;
    out.sum = sum.data_ptr<float>();
    out.row_stride = columns;
    return multiply_tiles(operand(left, true), operand(right, true), {rows, columns, depth}, out);
  }
  const int m = static_cast<int>(rows), n = static_cast<int>(columns), k = static_cast<int>(depth);
  widening_product(left.scalar_type())(row_major, transposed, as_it_is, m, n, k, 1, left.const_data_ptr(), m,
                                       right.const_data_ptr(), n, 1, sum.data_ptr<float>(), n);
}

}  // namespace runtime::kernels
