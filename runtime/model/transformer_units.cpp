#include "runtime/model/transformer_units.h"

#include <algorithm>
#include <string>
#include <vector>

#include "runtime/model/activation.h"

namespace runtime {

namespace {

AttentionShape shape_on_this_rank(const specs::AttentionSpec& attention, const Communicator& tensor) {
  const std::int64_t heads = attention.heads / tensor.size();
  return {heads, std::max<std::int64_t>(attention.kv_heads / tensor.size(), 1), attention.head_dim,
          heads * tensor.rank(), attention.heads};
}

}  // namespace

std::int64_t first_row(const Communicator& tensor, bool sequence_parallel, const ForwardContext& context) {
  return sequence_parallel ? context.tokens() / tensor.size() * tensor.rank() : 0;
}

AttentionUnit::AttentionUnit(const StageBuilder& builder, std::int64_t layer, const RotaryTable* rotary,
                             bool core_recomputed)
    : TransformerUnit(specs::attention_unit(layer)),
      tensor_(builder.tensor()),
      sequence_parallel_(builder.sequence_parallel()),
      dropout_(builder.training().dropout, builder.training().seed,
               "dropout." + builder.names().attention_output(layer)) {
  const specs::ModelSpec& model = builder.model();
  const specs::AttentionSpec& attention = model.attention;
  const ParameterNames& names = builder.names();
  const std::int64_t query_width = attention.heads * attention.head_dim;
  norm_ = builder.norm(names.attention_norm(layer));

  ParameterBlock& weight =
      builder.add({builder.column_weight(names.projection(layer, 'q') + ".weight", query_width, model.hidden),
                   builder.kv_weight(names.projection(layer, 'k') + ".weight"),
                   builder.kv_weight(names.projection(layer, 'v') + ".weight")});
  ParameterBlock* bias = nullptr;
  if (attention.qkv_bias)
    bias = &builder.add({builder.column_bias(names.projection(layer, 'q') + ".bias", query_width),
                         builder.kv_bias(names.projection(layer, 'k') + ".bias"),
                         builder.kv_bias(names.projection(layer, 'v') + ".bias")});
  projections_ =
      std::make_unique<Linear>(weight, bias, tensor_, builder.parallel_input(), LinearOutput::local);
  const std::string output = names.attention_output(layer);
  const specs::TrainingSpec& training = builder.training();
  core_ = std::make_unique<AttentionCore>(
      shape_on_this_rank(attention, tensor_), AttentionTreatment{training.attention, core_recomputed}, rotary,
      Dropout(training.attention_dropout, training.seed, "dropout.weights." + output));

  ParameterBlock& output_weight =
      builder.add(builder.row_weight(output + ".weight", model.hidden, query_width));
  ParameterBlock* output_bias = nullptr;
  if (attention.output_bias)
    output_bias = &builder.add(builder.replicated(output + ".bias", {model.hidden}, InitialValue::zeros));
  output_ = std::make_unique<Linear>(output_weight, output_bias, tensor_, LinearInput::local,
                                     builder.parallel_output());
}

at::Tensor AttentionUnit::compute(const at::Tensor& x, ForwardContext& context) const {
  const auto [stream, normal] = norm_->branch(x);
  const at::Tensor attended = core_->forward(projections_->forward(normal, context), context);
  const at::Tensor output = output_->forward(attended, context);
  return stream.add(dropout_.forward(output, first_row(tensor_, sequence_parallel_, context), context));
}

FeedForwardUnit::FeedForwardUnit(const StageBuilder& builder, std::int64_t layer)
    : TransformerUnit(specs::feed_forward_unit(layer)),
      tensor_(builder.tensor()),
      sequence_parallel_(builder.sequence_parallel()),
      spec_(builder.model().feed_forward),
      dropout_(builder.training().dropout, builder.training().seed,
               "dropout." + builder.names().down(layer)) {
  const ParameterNames& names = builder.names();
  const std::int64_t hidden = builder.model().hidden;
  norm_ = builder.norm(names.feed_forward_norm(layer));

  std::vector<std::string> inner{names.up(layer)};
  if (spec_.gated) inner.insert(inner.begin(), names.gate(layer));
  std::vector<ParameterSpec> weights;
  std::vector<ParameterSpec> biases;
  for (const std::string& name : inner) {
    weights.push_back(builder.column_weight(name + ".weight", spec_.hidden, hidden));
    biases.push_back(builder.column_bias(name + ".bias", spec_.hidden));
  }
  ParameterBlock& weight = builder.add(std::move(weights));
  ParameterBlock* bias = spec_.bias ? &builder.add(std::move(biases)) : nullptr;
  inner_ = std::make_unique<Linear>(weight, bias, tensor_, builder.parallel_input(), LinearOutput::local);

  ParameterBlock& output =
      builder.add(builder.row_weight(names.down(layer) + ".weight", hidden, spec_.hidden));
  ParameterBlock* output_bias =
      spec_.bias
          ? &builder.add(builder.replicated(names.down(layer) + ".bias", {hidden}, InitialValue::zeros))
          : nullptr;
  output_ =
      std::make_unique<Linear>(output, output_bias, tensor_, LinearInput::local, builder.parallel_output());
}

at::Tensor FeedForwardUnit::compute(const at::Tensor& x, ForwardContext& context) const {
  const auto [stream, normal] = norm_->branch(x);
  const at::Tensor inner = inner_->forward(normal, context);
  const at::Tensor output = output_->forward(activate(inner, spec_.activation, spec_.gated), context);
  return stream.add(dropout_.forward(output, first_row(tensor_, sequence_parallel_, context), context));
}

}  // namespace runtime
