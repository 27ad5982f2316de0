#include "runtime/kernels/column_sums.h"

#include <algorithm>

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <c10/util/Exception.h>

#include "runtime/kernels/vector_math.h"

namespace runtime::kernels {

namespace {

/// Partial sums of so many columns stay in the first-level cache, and of so many rows lose few bits.
constexpr std::int64_t block_columns = 1024, block_rows = 256;

/// partial[0 … count) += of `rows` rows.
template <class Element>
DSPLAN_INLINE void add_rows(Wide<Element>* __restrict partial, const Element* __restrict x,
                            std::int64_t stride, std::int64_t rows, std::int64_t count) {
  std::int64_t row = 0;
  for (; row + 4 <= rows; row += 4, x += 4 * stride) {
    const Element* __restrict a = x, * __restrict b = x + stride, * __restrict c = x + 2 * stride, * __restrict d = x + 3 * stride;
    for (std::int64_t i = 0; i < count; ++i)
      partial[i] += (widen(a[i]) + widen(b[i])) + (widen(c[i]) + widen(d[i]));
  }
  for (; row < rows; ++row, x += stride)
    for (std::int64_t i = 0; i < count; ++i) partial[i] += widen(x[i]);
}

#define DSPLAN_COLUMN_SUMS(Element)                                                                  \
  DSPLAN_VECTOR_CLONES void add_block(Wide<Element>* partial, const Element* x, std::int64_t stride, \
                                      std::int64_t rows, std::int64_t count) {                       \
    add_rows(partial, x, stride, rows, count);                                                       \
  }
DSPLAN_FOR_ELEMENT_TYPES(DSPLAN_COLUMN_SUMS)

template <class Element>
void add_columns(Wide<Element>* sum, const Element* x, std::int64_t stride, std::int64_t rows,
                 std::int64_t count) {
  Wide<Element> partial[block_columns];
  for (std::int64_t row = 0; row < rows; row += block_rows) {
    std::fill_n(partial, count, Wide<Element>(0));
    add_block(partial, x + row * stride, stride, std::min(block_rows, rows - row), count);
    for (std::int64_t i = 0; i < count; ++i) sum[i] += partial[i];
  }
}

}  // namespace

void add_column_sums(const at::Tensor& sum, const at::Tensor& rows) {
  const at::Tensor matrix = rows.contiguous();
  const std::int64_t count = matrix.size(0), columns = matrix.size(1);
  TORCH_INTERNAL_ASSERT(sum.is_contiguous() && sum.numel() == columns, "a sum for each column");
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kBFloat16, at::kHalf, matrix.scalar_type(), "add_column_sums", [&] {
    const auto* x = matrix.const_data_ptr<scalar_t>();
    auto* out = sum.data_ptr<Wide<scalar_t>>();
    const std::int64_t blocks = (columns + block_columns - 1) / block_columns;
    at::parallel_for(0, blocks, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t first = begin * block_columns; first < std::min(columns, end * block_columns);
           first += block_columns)
        add_columns(out + first, x + first, columns, count, std::min(block_columns, columns - first));
    });
  });
}

}  // namespace runtime::kernels
