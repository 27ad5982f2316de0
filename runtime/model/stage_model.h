// One pipeline stage: a run of units of the model, from tokens or the stream of the stage before, to the
// stream for the stage after or the loss.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "runtime/model/forward_context.h"
#include "runtime/model/transformer_units.h"
#include "runtime/parallel/vocabulary.h"
#include "specs/plan/placement.h"

namespace runtime {

/// How often a unit was computed forward in training, replays counted.
struct UnitPasses {
  std::int64_t unit = 0;
  std::int64_t whole = 0;
  std::int64_t attention_core = 0;  ///< 0 for a feed-forward network
};

/// Is shown the output of each unit of a forward pass; that of the output layer is the loss.
using UnitObserver = std::function<void(std::int64_t unit, const at::Tensor& output)>;

class StageModel {
 public:
  /// Declares the parameters of the stage's units. A tied table that another stage of this rank holds already
  /// is shared with it.
  StageModel(const StageBuilder& builder, const specs::PipelineStage& stage, const RotaryTable* rotary);

  bool has_embedding() const { return embedding_.has_value(); }
  bool has_output() const { return loss_.has_value(); }

  /// The stream that enters the first layer: [rows, hidden]. Outside of autograd.
  at::Tensor embed(const ForwardContext& context) const;
  void embed_backward(const at::Tensor& stream_gradient, const ForwardContext& context) const;

  /// The units whose parameters a forward pass reads, and a backward pass with the recomputation in it, in
  /// order.
  UnitUses forward_uses() const;
  UnitUses backward_uses() const;

  /// From the stream to the stream, or to the scalar loss where the stage has the output layer.
  at::Tensor forward(const at::Tensor& stream, ForwardContext& context,
                     const UnitObserver& observer = {}) const;

  /// So far, in the order of the units.
  std::vector<UnitPasses> passes() const;

  /// From the stream to this rank's columns of the logits; requires the output layer. Outside of autograd.
  at::Tensor logits(const at::Tensor& stream, ForwardContext& context) const;

 private:
  /// What of a layer is in this stage.
  struct Layer {
    std::int64_t unit = 0;
    std::vector<std::unique_ptr<TransformerUnit>> halves;
  };
  /// Layers that are treated as one: those between two checkpoints.
  struct LayerGroup {
    std::vector<Layer> layers;
    bool recomputed = false;
  };

  at::Tensor run_layers(const at::Tensor& stream, ForwardContext& context,
                        const UnitObserver& observer) const;
  void build_embedding(const StageBuilder& builder, const VocabularyLayout& layout, bool other_end_elsewhere);
  void build_output(const StageBuilder& builder, const VocabularyLayout& layout, bool other_end_elsewhere);

  const Communicator& tensor_;
  bool sequence_parallel_;
  std::int64_t output_unit_;
  std::optional<VocabularyEmbedding> embedding_;
  ParameterBlock* positions_ = nullptr;
  std::optional<Dropout> embedding_dropout_;
  std::vector<LayerGroup> layers_;
  std::int64_t gathered_output_unit_ = 0;  ///< for a `UnitPassListener`
  std::unique_ptr<Norm> final_norm_;
  std::optional<VocabularyLoss> loss_;
};

}  // namespace runtime
