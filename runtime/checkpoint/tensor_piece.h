// The tensors of a run as a checkpoint sees them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "runtime/checkpoint/tensor_region.h"

namespace runtime {

class Optimizer;

/// A rank's part of a tensor that the whole job has once: a parameter or a moment, in the model's own shape,
/// so that any placement can read what any other has written.
struct TensorPiece {
  std::string name;
  std::vector<std::int64_t> global_shape;
  TensorRegion region;
  at::Tensor data;  ///< contiguous, region.size() elements; shares the run's memory
};

/// All state of this rank's optimizer: of each parameter the weights that it updates (fp32 masters of 16-bit
/// parameters) under the parameter's name, and its moments under "optimizer.<moment>.<name>".
std::vector<TensorPiece> tensor_pieces(const Optimizer& optimizer);

}  // namespace runtime
