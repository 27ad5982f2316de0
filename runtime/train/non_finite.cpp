#include "runtime/train/non_finite.h"

#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "runtime/comm/agreement.h"

namespace runtime {

namespace {

/// What one rank found; the finding with the lowest order is the first.
struct Finding {
  std::int64_t order = 0;
  std::string tensor;
};

bool is_finite(const at::Tensor& tensor) { return tensor.isfinite().all().item<bool>(); }

std::string name_of_output(std::int64_t unit, std::int64_t layers) {
  if (unit == specs::embedding_unit()) return "the output of the embedding";
  if (unit == specs::output_unit(layers)) return "the loss";
  const std::int64_t layer = (unit - 1) / 2;
  return fmt::format("the output of the {} of layer {}",
                     unit == specs::attention_unit(layer) ? "attention" : "feed-forward network", layer);
}

std::optional<Finding> first_output(Trainer& trainer, const std::vector<MicroBatch>& micro_batches) {
  std::optional<std::int64_t> first;
  trainer.executor().on_unit_output = [&](std::int64_t unit, const at::Tensor& output) {
    if ((!first || unit < *first) && !is_finite(output)) first = unit;
  };
  trainer.evaluate(micro_batches);
  trainer.executor().on_unit_output = nullptr;
  if (!first) return std::nullopt;
  return Finding{*first, name_of_output(*first, trainer.spec().model.layers)};
}

/// The number in a name such as transformer.h.3.attn.q_proj.weight.
std::string layer_in(const std::string& name) {
  for (std::size_t at = name.find('.'); at != std::string::npos; at = name.find('.', at + 1)) {
    const std::size_t end = name.find_first_not_of("0123456789", at + 1);
    if (end != std::string::npos && end > at + 1 && name[end] == '.')
      return " (layer " + name.substr(at + 1, end - at - 1) + ")";
  }
  return {};
}

std::optional<Finding> first_gradient(const Trainer& trainer) {
  constexpr std::int64_t most_parameters_of_a_stage = 1 << 20;
  std::map<const Parameter*, std::int64_t> order;
  std::int64_t index = 0;
  for (const auto& block : trainer.parameters().blocks())
    for (const Parameter& parameter : block->parameters())
      order[&parameter] = -(block->stage() * most_parameters_of_a_stage + index++);
  std::optional<Finding> first;
  for (const StatePart& part : trainer.optimizer().parts())
    for (const StateSlice& slice : part.slices) {
      const std::int64_t here = order.at(slice.parameter);
      if ((first && first->order <= here) || is_finite(slice.gradient)) continue;
      const std::string& name = slice.parameter->name();
      first = {here, fmt::format("the gradient of {}{}", name, layer_in(name))};
    }
  return first;
}

/// The first finding of any rank, the lowest rank's where several found the same.
std::string first_of_all(const Communicator& world, const std::optional<Finding>& mine) {
  const Agreement all =
      agree(world, [&] { return mine ? fmt::format("{} {}", mine->order, mine->tensor) : std::string(); });
  std::optional<std::int64_t> order;
  std::string text;
  for (std::size_t rank = 0; rank < all.texts.size(); ++rank) {
    if (all.texts[rank].empty()) continue;
    std::size_t end = 0;
    const std::int64_t here = std::stoll(all.texts[rank], &end);
    if (order && here >= *order) continue;
    order = here;
    text = fmt::format("{} on rank {}", all.texts[rank].substr(end + 1), world.ranks()[rank]);
  }
  return text;
}

}  // namespace

std::string first_non_finite(Trainer& trainer, const std::vector<MicroBatch>& micro_batches,
                             const StepResult& result) {
  const Communicator& world = trainer.mesh().world();
  if (!std::isfinite(result.loss))
    if (std::string output = first_of_all(world, first_output(trainer, micro_batches)); !output.empty())
      return output;
  return first_of_all(world, first_gradient(trainer));
}

}  // namespace runtime
