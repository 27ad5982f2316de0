#include "runtime/kernels/product_accumulation.h"

#include <limits>

#include <c10/util/Exception.h>

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

}  // namespace

bool can_accumulate_product(const at::Tensor& sum, const at::Tensor& left, const at::Tensor& right) {
  return multiplies_matrices_of_bf16() && sum.scalar_type() == at::kFloat &&
         left.scalar_type() == at::kBFloat16 && right.scalar_type() == at::kBFloat16 && sum.is_contiguous() &&
         left.is_contiguous() && right.is_contiguous() && fits(left.size(0)) && fits(left.size(1)) &&
         fits(right.size(1));
}

void accumulate_product(const at::Tensor& sum, const at::Tensor& left, const at::Tensor& right) {
  TORCH_INTERNAL_ASSERT(can_accumulate_product(sum, left, right));
  const int m = static_cast<int>(left.size(1)), n = static_cast<int>(right.size(1)),
            k = static_cast<int>(left.size(0));
  if (m == 0 || n == 0 || k == 0) return;
  cblas_gemm_bf16bf16f32(row_major, transposed, as_it_is, m, n, k, 1, left.const_data_ptr(), m,
                         right.const_data_ptr(), n, 1, sum.data_ptr<float>(), n);
}

}  // namespace runtime::kernels
