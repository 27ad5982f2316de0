// The initial values of a parameter, from seed, name and position in the full tensor alone.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "runtime/model/parameter.h"

namespace runtime {

/// Writes elements [begin, begin + output.numel()) of the parameter's local shape, flattened, into `output`
/// (fp32 or fp64, contiguous). Padding rows are zero. The same value up to the precision of `output` in every
/// placement: an fp32 result is the fp64 one rounded.
void fill_initial(const ParameterSpec& spec, std::uint64_t seed, std::int64_t begin, at::Tensor output);

}  // namespace runtime
