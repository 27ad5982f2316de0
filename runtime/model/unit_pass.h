// The passes of a micro-batch through the units of a model, told to whoever follows them: the gathering of
// sharded parameters, traces, tests.
//
// A unit is what ZeRO 3 gathers and releases as one: the embedding (0), a transformer block (1 … layers), the
// output layer with its norm (layers + 1; with a tied table on the same rank that norm belongs to the
// embedding's unit, whose table the output layer reads).
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace runtime {

struct ForwardContext;

class UnitPassListener {
 public:
  virtual ~UnitPassListener() = default;
  /// A forward pass reads the unit's parameters between these two; so does the one of a recomputation.
  virtual void forward_begins(std::int64_t unit) = 0;
  virtual void forward_ends(std::int64_t unit) = 0;
  virtual void backward_begins(std::int64_t unit) = 0;
  virtual void backward_ends(std::int64_t unit) = 0;
};

/// What happens to a unit, in the order of a pass. The embedding's backward pass reads no parameters and is
/// not among them.
struct UnitUse {
  enum class Kind : std::uint8_t { forward, recomputation, backward };
  std::int64_t unit = 0;
  Kind kind = Kind::forward;
  bool operator==(const UnitUse&) const = default;
};
using UnitUses = std::vector<UnitUse>;

/// Where a unit begins and ends on the stream: x itself, and the listener of the context is told when forward
/// and, later, backward pass by. Without a listener nothing is added to the graph.
at::Tensor enter_unit(const at::Tensor& x, std::int64_t unit, const ForwardContext& context);
at::Tensor leave_unit(const at::Tensor& x, std::int64_t unit, const ForwardContext& context);

}  // namespace runtime
