// Rotary position embedding, in place.
#pragma once

#include <ATen/core/Tensor.h>

namespace runtime::kernels {

/// x [sequences, length, heads, head_dim], a view into a matrix whose rows are the tokens. Dimension i < half
/// of each head turns with dimension half + i by the angle of its position; cosine and sine [length or more,
/// half], fp32, or fp64 where x is. `direction` −1 turns back.
void rotate_heads(const at::Tensor& x, const at::Tensor& cosine, const at::Tensor& sine, int direction);

}  // namespace runtime::kernels
