// The non-linearity of the feed-forward network. Saved for backward: the input, nothing else.
#pragma once

#include <ATen/core/Tensor.h>

#include "specs/language/model.h"

namespace runtime {

/// x [tokens, width] → [tokens, width]; gated: x holds gate and up projection side by side, →
/// activation(gate) · up [tokens, width / 2].
at::Tensor activate(const at::Tensor& x, specs::Activation activation, bool gated);

}  // namespace runtime
