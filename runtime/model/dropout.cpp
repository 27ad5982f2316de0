#include "runtime/model/dropout.h"

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include "runtime/model/counter_random.h"

namespace runtime {

namespace {

struct MaskOrigin {
  std::uint64_t key = 0;
  std::uint64_t step = 0;
  std::uint64_t element = 0;    ///< of x[0] in the step's global batch, row-major
  std::uint32_t threshold = 0;  ///< bits below it drop
};

template <class Value>
void drop(const Value* input, Value* output, std::int64_t count, const MaskOrigin& origin, double scale) {
  using Wide = std::conditional_t<std::is_same_v<Value, double>, double, float>;
  const auto factor = static_cast<Wide>(scale);
  at::parallel_for(0, count, 16384, [&](std::int64_t first, std::int64_t last) {
    RandomBlock bits{};
    std::uint64_t held = ~std::uint64_t{0};
    for (std::int64_t i = first; i < last; ++i) {
      const std::uint64_t element = origin.element + static_cast<std::uint64_t>(i);
      if (element / 4 != held) {
        held = element / 4;
        bits = philox(origin.key, origin.step, held);
      }
      const bool kept = bits[element % 4] >= origin.threshold;
      output[i] = kept ? static_cast<Value>(static_cast<Wide>(input[i]) * factor) : Value(0);
    }
  });
}

}  // namespace

Dropout::Dropout(double probability, std::uint64_t seed, std::string_view site)
    : probability_(probability), key_(random_key(seed, site)) {}

struct Dropout::Function : torch::autograd::Function<Dropout::Function> {
  static at::Tensor forward(torch::autograd::AutogradContext* node, const at::Tensor& x,
                            const Dropout* dropout, std::int64_t first_row, const ForwardContext* context) {
    node->saved_data["dropout"] = reinterpret_cast<std::int64_t>(dropout);
    node->saved_data["first_row"] = first_row;
    node->saved_data["context"] = reinterpret_cast<std::int64_t>(context);
    return dropout->apply(x, first_row, *context);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* node,
                                                 torch::autograd::variable_list gradients) {
    const auto* dropout = reinterpret_cast<const Dropout*>(node->saved_data["dropout"].toInt());
    const auto* context = reinterpret_cast<const ForwardContext*>(node->saved_data["context"].toInt());
    return {dropout->apply(gradients[0].contiguous(), node->saved_data["first_row"].toInt(), *context),
            at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

at::Tensor Dropout::forward(const at::Tensor& x, std::int64_t first_row,
                            const ForwardContext& context) const {
  if (probability_ <= 0 || !context.training) return x;
  return Function::apply(x, this, first_row, &context);
}

at::Tensor Dropout::apply(const at::Tensor& x, std::int64_t first_row, const ForwardContext& context) const {
  MaskOrigin origin;
  origin.key = key_;
  origin.step = static_cast<std::uint64_t>(context.step);
  origin.element =
      static_cast<std::uint64_t>((context.batch->first_sequence * context.length + first_row) * x.size(1));
  origin.threshold = static_cast<std::uint32_t>(probability_ * 0x1p32);
  const at::Tensor output = at::empty_like(x);
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kBFloat16, at::kHalf, x.scalar_type(), "dropout", [&] {
    drop(x.const_data_ptr<scalar_t>(), output.data_ptr<scalar_t>(), x.numel(), origin,
         1 / (1 - probability_));
  });
  return output;
}

}  // namespace runtime
