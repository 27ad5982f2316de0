#include "runtime/kernels/matrix_products.h"

#include <limits>

#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <c10/util/Exception.h>

#include "runtime/kernels/tile_product.h"

// MKL's, which LibTorch for x86 carries and no header of it declares; absent elsewhere.
extern "C" [[gnu::weak]] void cblas_gemm_bf16bf16f32(int layout, int transpose_left, int transpose_right,
                                                     int m, int n, int k, float factor, const void* left,
                                                     int left_stride, const void* right, int right_stride,
                                                     float sum_factor, float* sum, int sum_stride);

namespace runtime::kernels {

namespace {

// Of CBLAS.
constexpr int row_major = 101, as_it_is = 111, transposed = 112;

bool multiplies_matrices_of_bf16() {
#if defined(__x86_64__) && defined(__GNUC__)
  static const bool found = cblas_gemm_bf16bf16f32 != nullptr && __builtin_cpu_supports("avx512bf16");
  return found;
#else
  return false;
#endif
}

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

}  // namespace

at::Tensor multiply_by_transpose(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  if (has_tiles() && goes_through_tiles(x) && goes_through_tiles(weight) &&
      (!bias.defined() || bias.is_contiguous()))
    return multiply_rounded(operand(x, false), operand(weight, false), {x.size(0), weight.size(0), x.size(1)},
                            bias, x.options());
  return bias.defined() ? at::addmm(bias, x, weight.t()) : x.mm(weight.t());
}

at::Tensor multiply_matrices(const at::Tensor& left, const at::Tensor& right) {
  if (has_tiles() && goes_through_tiles(left) && goes_through_tiles(right))
    return multiply_rounded(operand(left, false), operand(right, true),
                            {left.size(0), right.size(1), left.size(1)}, at::Tensor(), left.options());
  return left.mm(right);
}

bool can_accumulate_product(const at::Tensor& sum, const at::Tensor& left, const at::Tensor& right) {
  return (has_tiles() || multiplies_matrices_of_bf16()) && sum.scalar_type() == at::kFloat &&
         left.scalar_type() == at::kBFloat16 && right.scalar_type() == at::kBFloat16 && sum.is_contiguous() &&
         left.is_contiguous() && right.is_contiguous() && fits(left.size(0)) && fits(left.size(1)) &&
         fits(right.size(1));
}

void accumulate_product(const at::Tensor& sum, const at::Tensor& left, const at::Tensor& right) {
  TORCH_INTERNAL_ASSERT(can_accumulate_product(sum, left, right));
  const std::int64_t rows = left.size(1), columns = right.size(1), depth = left.size(0);
  if (rows == 0 || columns == 0 || depth == 0) return;
  if (has_tiles()) {
    TileResult out;
    out.sum = sum.data_ptr<float>();
    out.row_stride = columns;
    return multiply_tiles(operand(left, true), operand(right, true), {rows, columns, depth}, out);
  }
  const int m = static_cast<int>(rows), n = static_cast<int>(columns), k = static_cast<int>(depth);
  cblas_gemm_bf16bf16f32(row_major, transposed, as_it_is, m, n, k, 1, left.const_data_ptr(), m,
                         right.const_data_ptr(), n, 1, sum.data_ptr<float>(), n);
}

}  // namespace runtime::kernels
