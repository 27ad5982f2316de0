// The linear layer over the tensor axis: column-parallel, row-parallel, with and without sequence
// parallelism.
//
// Activations are matrices [rows, width]; rows are the tokens of the micro-batch, sequence after sequence.
// With sequence parallelism a rank of the tensor axis holds rows [rank · n/t, (rank + 1) · n/t) between the
// parallel layers: any split of the rows serves, since what happens there acts on each token alone.
//
// Saved for backward: the input (its own share of the rows only), nothing else.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "runtime/comm/communicator.h"
#include "runtime/model/forward_context.h"
#include "runtime/model/parameter_registry.h"

namespace runtime {

enum class LinearInput : std::uint8_t {
  local,     ///< belongs to this rank; its gradient needs no communication
  copied,    ///< the same on every rank; its gradient is summed over the axis
  gathered,  ///< a share of the rows on each rank: gathered in forward and again in backward, its gradient
             ///< summed and scattered
};

enum class LinearOutput : std::uint8_t {
  local,      ///< this rank's columns, or the whole without a tensor axis
  reduced,    ///< summed over the axis
  scattered,  ///< summed over the axis, each rank keeps its share of the rows
};

class Linear {
 public:
  /// Weight [out, in], bias [out] or null. A bias of a reduced or scattered output is added once, after the
  /// sum. References must outlive the layer.
  Linear(ParameterBlock& weight, ParameterBlock* bias, const Communicator& tensor, LinearInput input,
         LinearOutput output)
      : weight_(&weight), bias_(bias), tensor_(&tensor), input_(input), output_(output) {}

  at::Tensor forward(const at::Tensor& x, ForwardContext& context) const;

 private:
  struct Function;
  at::Tensor compute(const at::Tensor& x) const;
  at::Tensor backpropagate(const at::Tensor& x, const at::Tensor& output_gradient,
                           ForwardContext& context) const;
  void accumulate(const at::Tensor& x, const at::Tensor& output_gradient,
                  const at::Tensor& bias_source) const;

  ParameterBlock* weight_;
  ParameterBlock* bias_;
  const Communicator* tensor_;
  LinearInput input_;
  LinearOutput output_;
};

/// All rows of a matrix of which each rank of the axis holds a share, and the inverse with a sum, which uses
/// up `whole`.
at::Tensor gather_rows(const at::Tensor& share, const Communicator& tensor);
at::Tensor reduce_scatter_rows(const at::Tensor& whole, const Communicator& tensor);

/// This rank's share of the rows, where all of them stand on every rank: a view.
at::Tensor rows_of_rank(const at::Tensor& rows, const Communicator& tensor);

}  // namespace runtime
