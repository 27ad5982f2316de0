#include "runtime/checkpoint/tensor_piece.h"

#include "runtime/optimizer/optimizer.h"

namespace runtime {

std::vector<TensorPiece> tensor_pieces(const Optimizer& optimizer) {
  std::vector<TensorPiece> pieces;
  for (const StatePart& part : optimizer.parts())
    for (const StateSlice& slice : part.slices) {
      const ParameterSpec& spec = slice.parameter->spec;
      const auto add = [&](const std::string& name, const at::Tensor& data) {
        pieces.push_back({name, spec.global_shape, {spec.box, slice.begin, slice.end}, data});
      };
      add(spec.name, slice.weight);
      for (const auto& [moment, data] : slice.moments) add("optimizer." + moment + "." + spec.name, data);
    }
  return pieces;
}

}  // namespace runtime
