#include "runtime/model/stage_model.h"

#include <string>
#include <utility>

#include <ATen/ops/empty.h>

#include "runtime/model/recompute.h"
#include "runtime/monitor/memory_class.h"

namespace runtime {

namespace {

/// Of the units that a `UnitPassListener` is told of.
constexpr std::int64_t embedding_unit = 0;

/// Rows of the table when neither model nor placement says otherwise: Megatron's 128 per rank.
constexpr std::int64_t default_vocabulary_multiple = 128;

VocabularyLayout layout_on_this_rank(const StageBuilder& builder, specs::OutputLayerMode mode) {
  const specs::ModelSpec& model = builder.model();
  const Communicator& tensor = builder.tensor();
  const std::int64_t multiple =
      model.vocabulary_multiple > 0 ? model.vocabulary_multiple : default_vocabulary_multiple;
  if (tensor.size() == 1) mode = specs::OutputLayerMode::vocabulary_parallel;
  VocabularyLayout layout{{}, mode, builder.sequence_parallel()};
  layout.slice = mode == specs::OutputLayerMode::token_parallel
                     ? vocabulary_slice(model.vocabulary, multiple, 0, 1)
                     : vocabulary_slice(model.vocabulary, multiple, tensor.rank(), tensor.size());
  return layout;
}

ParameterBlock& declare_table(const StageBuilder& builder, const std::string& name,
                              const VocabularyLayout& layout, bool tied, bool primary) {
  const specs::ModelSpec& model = builder.model();
  ParameterSpec spec;
  spec.name = name;
  spec.global_shape = {model.vocabulary, model.hidden};
  if (layout.mode == specs::OutputLayerMode::token_parallel)
    spec.contract = Replicated{{specs::MeshAxis::tensor}};
  else
    spec.contract = Sharded{specs::MeshAxis::tensor, 0, 1};
  spec.box = {{layout.slice.first, 0}, {layout.slice.valid, model.hidden}};
  spec.local_shape = {layout.slice.rows, model.hidden};
  spec.tied = tied;
  spec.primary = primary;
  return builder.add(std::move(spec));
}

/// int64 [rows]: the position in its sequence of each row that this rank holds between the parallel layers.
at::Tensor row_positions(const Communicator& tensor, bool sequence_parallel, const ForwardContext& context) {
  const std::int64_t rows = sequence_parallel ? context.tokens() / tensor.size() : context.tokens();
  const std::int64_t first = first_row(tensor, sequence_parallel, context);
  at::Tensor positions = at::empty({rows}, at::kLong);
  auto* out = positions.data_ptr<std::int64_t>();
  for (std::int64_t row = 0; row < rows; ++row) out[row] = (first + row) % context.length;
  return positions;
}

struct LayerTreatment {
  bool recomputed = false;      ///< the whole layer
  bool attention_core = false;  ///< its attention core alone
  bool joins_previous = false;  ///< no checkpoint stands between this layer and the one before
};

LayerTreatment treatment_of(const specs::PipelineStage& stage, std::int64_t touched_layer) {
  std::int64_t first = 0;
  for (const specs::RecomputationRun& run : stage.recomputation) {
    const std::int64_t index = touched_layer - first;
    first += run.layers;
    if (index >= run.layers) continue;
    const bool recomputed = run.mode == specs::Recomputation::full;
    return {recomputed, run.mode == specs::Recomputation::selective,
            recomputed && index % run.block_layers != 0};
  }
  return {};
}

}  // namespace

StageModel::StageModel(const StageBuilder& builder, const specs::PipelineStage& stage,
                       const RotaryTable* rotary)
    : tensor_(builder.tensor()),
      sequence_parallel_(builder.sequence_parallel()),
      output_unit_(specs::output_unit(builder.model().layers)) {
  const std::int64_t layers = builder.model().layers;
  const bool whole =
      stage.units.contains(specs::embedding_unit()) && stage.units.contains(specs::output_unit(layers));
  // A tied table lies as the output layer needs it.
  const VocabularyLayout output = layout_on_this_rank(builder, stage.modules.output_mode);
  const VocabularyLayout embedding =
      builder.model().tied_embeddings
          ? output
          : layout_on_this_rank(builder, specs::OutputLayerMode::vocabulary_parallel);
  if (stage.units.contains(specs::embedding_unit()))
    build_embedding(builder.for_unit(embedding_unit), embedding, !whole);
  std::int64_t touched = 0;
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const bool attends = stage.units.contains(specs::attention_unit(layer));
    const bool feeds = stage.units.contains(specs::feed_forward_unit(layer));
    if (!attends && !feeds) continue;
    const LayerTreatment treatment = treatment_of(stage, touched++);
    if (!treatment.joins_previous) layers_.emplace_back();
    LayerGroup& group = layers_.back();
    group.recomputed = treatment.recomputed;
    Layer& here = group.layers.emplace_back();
    here.unit = 1 + layer;
    const StageBuilder unit = builder.for_unit(here.unit);
    if (attends)
      here.halves.push_back(std::make_unique<AttentionUnit>(unit, layer, rotary, treatment.attention_core));
    if (feeds) here.halves.push_back(std::make_unique<FeedForwardUnit>(unit, layer));
  }
  if (!stage.units.contains(specs::output_unit(layers))) return;
  const bool shares_table = builder.model().tied_embeddings &&
                            builder.registry().find_block(builder.names().embedding()) != nullptr;
  gathered_output_unit_ = shares_table ? embedding_unit : 1 + layers;
  build_output(builder.for_unit(gathered_output_unit_), output, !whole);
}

void StageModel::build_embedding(const StageBuilder& builder, const VocabularyLayout& layout,
                                 bool other_end_elsewhere) {
  const specs::ModelSpec& model = builder.model();
  const bool tied = model.tied_embeddings && other_end_elsewhere && builder.mesh().embedding().size() > 1;
  ParameterBlock& block = declare_table(builder, builder.names().embedding(), layout, tied, true);
  embedding_.emplace(block, layout, tensor_);
  if (model.position_encoding == specs::PositionEncoding::learned)
    positions_ = &builder.add(builder.replicated(builder.names().positions(), {model.positions, model.hidden},
                                                 InitialValue::normal));
  embedding_dropout_.emplace(builder.training().dropout, builder.training().seed, "dropout.embedding");
}

void StageModel::build_output(const StageBuilder& builder, const VocabularyLayout& layout,
                              bool other_end_elsewhere) {
  const specs::ModelSpec& model = builder.model();
  if (model.final_norm) final_norm_ = builder.norm(builder.names().final_norm());
  ParameterBlock* block = nullptr;
  if (!model.tied_embeddings) {
    block = &declare_table(builder, builder.names().output(), layout, false, true);
  } else if (block = builder.registry().find_block(builder.names().embedding()); block != nullptr) {
    block->add_use();
  } else {
    block = &declare_table(builder, builder.names().embedding(), layout, other_end_elsewhere, false);
  }
  VocabularyLayout masked = layout;
  if (builder.faults().unmasked_padding) masked.slice.valid = masked.slice.rows;
  loss_.emplace(*block, masked, tensor_);
}

at::Tensor StageModel::embed(const ForwardContext& context) const {
  if (context.units != nullptr) context.units->forward_begins(embedding_unit);
  at::Tensor stream = embedding_->forward(context);
  if (positions_ != nullptr)
    stream.add_(positions_->value().index_select(0, row_positions(tensor_, sequence_parallel_, context)));
  if (context.units != nullptr) context.units->forward_ends(embedding_unit);
  return stream;
}

void StageModel::embed_backward(const at::Tensor& stream_gradient, const ForwardContext& context) const {
  if (positions_ != nullptr) {
    scatter_add_rows(positions_->gradient(), row_positions(tensor_, sequence_parallel_, context),
                     stream_gradient.contiguous());
    positions_->notify();
  }
  embedding_->backward(stream_gradient, context);
}

at::Tensor StageModel::run_layers(const at::Tensor& stream, ForwardContext& context,
                                  const UnitObserver& observer) const {
  at::Tensor x = stream;
  if (observer && embedding_) observer(specs::embedding_unit(), x);
  if (embedding_)
    x = embedding_dropout_->forward(x, first_row(tensor_, sequence_parallel_, context), context);
  for (const LayerGroup& group : layers_) {
    const auto body = [&group, &context, &observer](const at::Tensor& input, bool replay) {
      if (replay && context.other_masks_on_replay) ++context.step;
      at::Tensor output = input;
      for (const Layer& layer : group.layers) {
        output = enter_unit(output, layer.unit, context);
        for (const auto& half : layer.halves) {
          output = half->forward(output, context);
          if (!replay && observer) observer(half->unit(), output);  // gone when it is replayed
        }
        output = leave_unit(output, layer.unit, context);
      }
      return output;
    };
    x = group.recomputed && context.training ? recompute(x, body) : body(x, false);
  }
  return x;
}

at::Tensor StageModel::forward(const at::Tensor& stream, ForwardContext& context,
                               const UnitObserver& observer) const {
  at::Tensor x = run_layers(stream, context, observer);
  if (!loss_) return x;
  x = enter_unit(x, gathered_output_unit_, context);
  if (final_norm_) x = final_norm_->forward(x);
  const at::Tensor loss = loss_->forward(x, context);
  if (observer) observer(output_unit_, loss);
  return leave_unit(loss, gathered_output_unit_, context);
}

at::Tensor StageModel::logits(const at::Tensor& stream, ForwardContext& context) const {
  at::Tensor x = enter_unit(run_layers(stream, context, {}), gathered_output_unit_, context);
  if (final_norm_) x = final_norm_->forward(x);
  return leave_unit(loss_->logits(x), gathered_output_unit_, context);
}

std::vector<UnitPasses> StageModel::passes() const {
  std::vector<UnitPasses> all;
  for (const LayerGroup& group : layers_)
    for (const Layer& layer : group.layers)
      for (const auto& unit : layer.halves)
        all.push_back({unit->unit(), unit->passes(), unit->core_passes()});
  return all;
}

UnitUses StageModel::forward_uses() const {
  UnitUses uses;
  if (embedding_) uses.push_back({embedding_unit, UnitUse::Kind::forward});
  for (const LayerGroup& group : layers_)
    for (const Layer& layer : group.layers) uses.push_back({layer.unit, UnitUse::Kind::forward});
  if (loss_) uses.push_back({gathered_output_unit_, UnitUse::Kind::forward});
  return uses;
}

UnitUses StageModel::backward_uses() const {
  UnitUses uses;
  if (loss_) uses.push_back({gathered_output_unit_, UnitUse::Kind::backward});
  for (auto group = layers_.rbegin(); group != layers_.rend(); ++group) {
    if (group->recomputed)
      for (const Layer& layer : group->layers) uses.push_back({layer.unit, UnitUse::Kind::recomputation});
    for (auto layer = group->layers.rbegin(); layer != group->layers.rend(); ++layer)
      uses.push_back({layer->unit, UnitUse::Kind::backward});
  }
  return uses;
}

}  // namespace runtime
