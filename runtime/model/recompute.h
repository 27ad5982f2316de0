// Activation recomputation: only the input is kept, and the forward pass runs again when backward needs it.
#pragma once

#include <functional>

#include <ATen/core/Tensor.h>

namespace runtime {

/// `replay`: not for the first time.
using Recomputable = std::function<at::Tensor(const at::Tensor& x, bool replay)>;

/// body(x), of which nothing but x stays for backward. x must require a gradient. The body must give the same
/// values when it runs again; collectives in it run again too.
at::Tensor recompute(const at::Tensor& x, Recomputable body);

}  // namespace runtime
