#include <algorithm>

#include "runtime/train/trainer.h"

namespace runtime {

namespace {

class Refusals {
 public:
  void when(bool condition, std::string reason) {
    if (condition) reasons_.push_back(std::move(reason));
  }
  void indivisible(const char* what, std::int64_t value, const char* by, std::int64_t divisor) {
    when(value % divisor != 0, std::string(what) + " " + std::to_string(value) + " is not divisible by " +
                                   by + " " + std::to_string(divisor));
  }
  std::vector<std::string> take() { return std::move(reasons_); }

 private:
  std::vector<std::string> reasons_;
};

void refuse_model(const specs::ModelSpec& model, Refusals& refusals) {
  refusals.when(model.mixture.has_value(), "mixture-of-experts models are not implemented");
  refusals.when(model.encoder_layers > 0, "encoder-decoder models are not implemented");
  refusals.when(model.attention.latent.has_value(), "latent attention is not implemented");
  refusals.when(model.attention.qk_norm, "norms on queries and keys are not implemented");
  refusals.when(model.attention.sliding_window > 0, "sliding-window attention is not implemented");
  refusals.when(model.parallel_blocks || model.norms_per_layer != 2,
                "blocks other than norm, attention, norm, feed-forward are not implemented");
  refusals.when(model.embedding_norm || model.output_bias ||
                    (model.embedding_width > 0 && model.embedding_width != model.hidden),
                "an embedding norm, an output bias or a projected embedding is not implemented");
  refusals.when(model.prediction_layers > 0, "multi-token prediction is not implemented");
  refusals.when(model.position_encoding != specs::PositionEncoding::learned &&
                    model.position_encoding != specs::PositionEncoding::rotary &&
                    model.position_encoding != specs::PositionEncoding::none,
                "position encodings other than learned and rotary are not implemented");
  refusals.when(
      !model.rotary.scaling.empty() && model.rotary.scaling != "linear" && model.rotary.scaling != "llama3",
      "rotary scaling \"" + model.rotary.scaling + "\" is not implemented");
}

void refuse_placement(const TrainerSpec& spec, Refusals& refusals) {
  const specs::Placement& placement = spec.placement;
  const specs::PipelineStage& first = placement.stages.front();
  for (const specs::PipelineStage& stage : placement.stages) {
    if (stage.mesh == first.mesh && stage.zero == first.zero) continue;
    refusals.when(true, "stages of unlike meshes are not implemented");
    break;
  }
  for (const specs::PipelineStage& stage : placement.stages) {
    if (stage.offload.delayed_update == first.offload.delayed_update) continue;
    refusals.when(true, "delayed updates of some stages and not of others are not implemented");
    break;
  }
  refusals.when(
      spec.model.tied_embeddings && first.modules.output_mode != placement.stages.back().modules.output_mode,
      "first and last stage hold a tied table in unlike layouts: give both the same output_mode");
  const specs::StageMesh& mesh = first.mesh;
  const specs::AttentionSpec& attention = spec.model.attention;
  refusals.indivisible("attention heads", attention.heads, "tensor", mesh.tensor);
  refusals.when(attention.kv_heads % mesh.tensor != 0 && mesh.tensor % attention.kv_heads != 0,
                "key-value heads " + std::to_string(attention.kv_heads) +
                    " neither divide nor are divisible by tensor " + std::to_string(mesh.tensor));
  refusals.indivisible("feed-forward width", spec.model.feed_forward.hidden, "tensor", mesh.tensor);
  const bool token_parallel =
      placement.stages.back().modules.output_mode == specs::OutputLayerMode::token_parallel;
  if (placement.sequence_parallel || token_parallel)
    refusals.indivisible("tokens of a micro-batch", placement.micro_batch * spec.training.sequence_length,
                         "tensor", mesh.tensor);
}

}  // namespace

std::vector<std::string> training_refusals(const TrainerSpec& spec) {
  Refusals refusals;
  refuse_model(spec.model, refusals);
  refuse_placement(spec, refusals);
  return refusals.take();
}

}  // namespace runtime
