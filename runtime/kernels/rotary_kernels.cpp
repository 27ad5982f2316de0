#include "runtime/kernels/rotary_kernels.h"

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <c10/util/Exception.h>

#include "runtime/kernels/vector_math.h"

namespace runtime::kernels {

namespace {

template <class Element>
DSPLAN_INLINE void rotate(Element* __restrict row, std::int64_t heads, std::int64_t head_dim,
                          const Wide<Element>* __restrict cosine, const Wide<Element>* __restrict sine,
                          std::int64_t half, Wide<Element> direction) {
  for (std::int64_t head = 0; head < heads; ++head, row += head_dim)
    for (std::int64_t i = 0; i < half; ++i) {
      const auto first = widen(row[i]), second = widen(row[half + i]);
      const auto turn = sine[i] * direction;
      row[i] = static_cast<Element>(first * cosine[i] - second * turn);
      row[half + i] = static_cast<Element>(second * cosine[i] + first * turn);
    }
}

#define DSPLAN_ROTARY(Element)                                                                  \
  DSPLAN_VECTOR_CLONES void rotate_row(Element* row, std::int64_t heads, std::int64_t head_dim, \
                                       const Wide<Element>* cosine, const Wide<Element>* sine,  \
                                       std::int64_t half, Wide<Element> direction) {            \
    rotate(row, heads, head_dim, cosine, sine, half, direction);                                \
  }
DSPLAN_FOR_ELEMENT_TYPES(DSPLAN_ROTARY)

}  // namespace

void rotate_heads(const at::Tensor& x, const at::Tensor& cosine, const at::Tensor& sine, int direction) {
  const std::int64_t length = x.size(1), heads = x.size(2), head_dim = x.size(3), half = cosine.size(1);
  const std::int64_t row_stride = x.stride(1);
  TORCH_INTERNAL_ASSERT(x.stride(3) == 1 && x.stride(2) == head_dim && x.stride(0) == length * row_stride,
                        "heads are no view into the rows of a matrix");
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kBFloat16, at::kHalf, x.scalar_type(), "rotate_heads", [&] {
    using Real = Wide<scalar_t>;
    auto* data = x.data_ptr<scalar_t>();
    const auto* cos = cosine.const_data_ptr<Real>();
    const auto* sin = sine.const_data_ptr<Real>();
    at::parallel_for(0, x.size(0) * length, 16, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        const std::int64_t position = row % length;
        rotate_row(data + row * row_stride, heads, head_dim, cos + position * half, sin + position * half,
                   half, static_cast<Real>(direction));
      }
    });
  });
}

}  // namespace runtime::kernels
