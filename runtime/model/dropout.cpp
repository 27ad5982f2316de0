#include "runtime/model/dropout.h"

#include <algorithm>

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include "runtime/model/counter_random.h"

namespace runtime {

struct Dropout::Mask {
  std::uint64_t key = 0;
  std::uint64_t step = 0;
  std::uint32_t threshold = 0;  ///< bits below it drop
  double scale = 1;
};

namespace {

/// `first` is the number of input[0].
template <class Mask, class Value>
void drop(const Value* input, Value* output, std::int64_t count, std::uint64_t first, const Mask& mask) {
  using Wide = std::conditional_t<std::is_same_v<Value, double>, double, float>;
  const auto factor = static_cast<Wide>(mask.scale);
  RandomBlock bits{};
  std::uint64_t held = ~std::uint64_t{0};
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint64_t element = first + static_cast<std::uint64_t>(i);
    if (element / 4 != held) {
      held = element / 4;
      bits = philox(mask.key, mask.step, held);
    }
    const bool kept = bits[element % 4] >= mask.threshold;
    output[i] = kept ? static_cast<Value>(static_cast<Wide>(input[i]) * factor) : Value(0);
  }
}

constexpr std::int64_t grain = 16384;

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
  return active(context) ? Function::apply(x, this, first_row, &context) : x;
}

Dropout::Mask Dropout::mask(const ForwardContext& context) const {
  return {key_, static_cast<std::uint64_t>(context.step), static_cast<std::uint32_t>(probability_ * 0x1p32),
          1 / (1 - probability_)};
}

at::Tensor Dropout::apply(const at::Tensor& x, std::int64_t first_row, const ForwardContext& context) const {
  const Mask mask = this->mask(context);
  const auto element =
      static_cast<std::uint64_t>((context.batch->first_sequence * context.length + first_row) * x.size(1));
  const at::Tensor output = at::empty_like(x);
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kBFloat16, at::kHalf, x.scalar_type(), "dropout", [&] {
    const auto* from = x.const_data_ptr<scalar_t>();
    auto* to = output.data_ptr<scalar_t>();
    at::parallel_for(0, x.numel(), grain, [&](std::int64_t begin, std::int64_t end) {
      drop(from + begin, to + begin, end - begin, element + static_cast<std::uint64_t>(begin), mask);
    });
  });
  return output;
}

void Dropout::drop_(const at::Tensor& x, const std::function<std::int64_t(std::int64_t row)>& first_element,
                    const ForwardContext& context) const {
  const Mask mask = this->mask(context);
  const std::int64_t width = x.size(1);
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kBFloat16, at::kHalf, x.scalar_type(), "dropout", [&] {
    auto* values = x.data_ptr<scalar_t>();
    at::parallel_for(0, x.size(0), std::max<std::int64_t>(grain / width, 1),
                     [&](std::int64_t begin, std::int64_t end) {
                       for (std::int64_t row = begin; row < end; ++row)
                         drop(values + row * width, values + row * width, width,
                              static_cast<std::uint64_t>(first_element(row)), mask);
                     });
  });
}

}  // namespace runtime
