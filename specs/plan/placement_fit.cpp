#include "specs/plan/placement_fit.h"

#include <algorithm>

#include <fmt/format.h>

namespace specs {
namespace {

class FitCheck {
 public:
  FitCheck(const Placement& placement, const ModelSpec& model, const TrainingSpec& training,
           PlacementViolationList& list)
      : placement_(placement), model_(model), training_(training), blocks_(block_count(model)), list_(list) {}

  void run(std::size_t index) {
    const PipelineStage& stage = placement_.stages[index];
    check_batch(index, stage);
    check_sequence(index, stage);
    check_attention(index, stage);
    check_feed_forward(index, stage);
    check_experts(index, stage);
    const std::int64_t first_layer = std::max<std::int64_t>(stage.units.first - 1, 0) / 2;
    const std::int64_t end_layer = std::min(stage.units.end / 2, blocks_);
    const std::int64_t touched = std::max<std::int64_t>(end_layer - first_layer, 0);
    std::int64_t treated = 0;
    for (const RecomputationRun& run : stage.recomputation) treated += run.layers;
    if (!stage.recomputation.empty() && treated != touched)
      list_.refuse(stage_field(index, "recomputation"),
                   fmt::format("names {} layers, the stage's units [{}, {}) touch {}", treated,
                               stage.units.first, stage.units.end, touched));
  }

 private:
  void check_batch(std::size_t index, const PipelineStage& stage) {
    if (placement_.replica_shares.empty()) {
      const std::int64_t batch = multiply({placement_.micro_batch, placement_.accumulation, stage.mesh.data});
      if (batch != training_.global_batch)
        list_.refuse(stage_field(index, "mesh/data"),
                     fmt::format("micro_batch {} × accumulation {} × data {} = {}, must be global_batch {}",
                                 placement_.micro_batch, placement_.accumulation, stage.mesh.data, batch,
                                 training_.global_batch));
      return;
    }
    std::int64_t replicas = 0;
    for (const ReplicaShare& share : placement_.replica_shares) replicas += share.replicas;
    if (replicas != stage.mesh.data)
      list_.refuse(stage_field(index, "mesh/data"),
                   fmt::format("replica_shares hold {} replicas for data {}", replicas, stage.mesh.data));
  }

  void check_sequence(std::size_t index, const PipelineStage& stage) {
    const std::int64_t length = training_.sequence_length;
    const StageMesh& mesh = stage.mesh;
    // The ring gives each rank one chunk from the front and one from the back, so that causal work is even.
    if (mesh.context > 1 && length % (2 * mesh.context) != 0)
      list_.refuse(stage_field(index, "mesh/context"),
                   fmt::format("sequence_length {} % (2 × context {}) = {}, must be 0", length, mesh.context,
                               length % (2 * mesh.context)));
    if (placement_.sequence_parallel && length % (mesh.context * mesh.tensor) != 0)
      list_.refuse(
          stage_field(index, "mesh/tensor"),
          fmt::format("sequence parallel: sequence_length {} % (context {} × tensor {}) = {}, must be 0",
                      length, mesh.context, mesh.tensor, length % (mesh.context * mesh.tensor)));
    const std::int64_t tokens = multiply({placement_.micro_batch, length}) / mesh.context;
    if (stage.units.contains(2 * blocks_ + 1) &&
        stage.modules.output_mode == OutputLayerMode::token_parallel && tokens % mesh.tensor != 0)
      list_.refuse(stage_field(index, "modules/output_mode"),
                   fmt::format("token-parallel: {} tokens of a micro-batch % tensor {} = {}, must be 0",
                               tokens, mesh.tensor, tokens % mesh.tensor));
  }

  /// Whether the stage holds the attention (offset 1) or the FFN (offset 2) of any layer.
  bool holds_any(const PipelineStage& stage, std::int64_t offset) const {
    const std::int64_t after = std::max<std::int64_t>(stage.units.first - offset + 1, 0) / 2;
    return after < blocks_ && stage.units.contains(2 * after + offset);
  }

  void check_attention(std::size_t index, const PipelineStage& stage) {
    if (!holds_any(stage, 1)) return;
    const std::int64_t own = stage.modules.attention_tensor;
    const std::int64_t degree = own > 0 ? own : stage.mesh.tensor;
    const StageField field = stage_field(index, own > 0 ? "modules/attention_tensor" : "mesh/tensor");
    const std::int64_t heads = model_.attention.heads;
    if (heads % degree != 0)
      list_.refuse(field, fmt::format("heads {} % tensor {} = {}, must be 0", heads, degree, heads % degree),
                   fmt::format("one of {}", divisors(heads)));
    const std::int64_t kv_heads = model_.attention.kv_heads;
    if (model_.attention.latent || kv_heads < 1) return;
    if (kv_heads % degree != 0 && degree % kv_heads != 0)
      list_.refuse(field,
                   fmt::format("kv_heads {} % tensor {} = {} and tensor {} % kv_heads {} = {}, one must be 0",
                               kv_heads, degree, kv_heads % degree, degree, kv_heads, degree % kv_heads),
                   fmt::format("a divisor or a multiple of {}", kv_heads));
  }

  void check_feed_forward(std::size_t index, const PipelineStage& stage) {
    if (!holds_any(stage, 2) || model_.feed_forward.hidden < 1) return;
    const std::int64_t own = stage.modules.feed_forward_tensor;
    const std::int64_t degree = own > 0 ? own : stage.mesh.tensor;
    const std::int64_t hidden = model_.feed_forward.hidden;
    if (hidden % degree != 0)
      list_.refuse(stage_field(index, own > 0 ? "modules/feed_forward_tensor" : "mesh/tensor"),
                   fmt::format("FFN hidden {} % tensor {} = {}, must be 0", hidden, degree, hidden % degree),
                   fmt::format("one of {}", divisors(hidden)));
  }

  void check_experts(std::size_t index, const PipelineStage& stage) {
    const StageMesh& mesh = stage.mesh;
    const auto field = [&](std::string_view name) { return stage_field(index, name); };
    if (!model_.mixture) {
      if (mesh.expert != 1 || mesh.expert_tensor != 1)
        list_.refuse(field("mesh/expert"),
                     fmt::format("expert {} × expert_tensor {} for a model without experts", mesh.expert,
                                 mesh.expert_tensor),
                     "1 and 1");
      return;
    }
    const std::int64_t experts = model_.mixture->experts;
    if (experts % mesh.expert != 0)
      list_.refuse(
          field("mesh/expert"),
          fmt::format("experts {} % expert {} = {}, must be 0", experts, mesh.expert, experts % mesh.expert),
          fmt::format("one of {}", divisors(experts)));
    const std::int64_t hidden = model_.mixture->expert_hidden;
    if (hidden % mesh.expert_tensor != 0)
      list_.refuse(field("mesh/expert_tensor"),
                   fmt::format("expert hidden {} % expert_tensor {} = {}, must be 0", hidden,
                               mesh.expert_tensor, hidden % mesh.expert_tensor),
                   fmt::format("one of {}", divisors(hidden)));
    const std::int64_t ranks = multiply({mesh.tensor, mesh.context, mesh.data});
    const std::int64_t grid = multiply({mesh.expert, mesh.expert_tensor});
    if (ranks % grid != 0)
      list_.refuse(
          field("mesh/expert"),
          fmt::format(
              "tensor {} × context {} × data {} = {} % (expert {} × expert_tensor {}) = {}, must be 0",
              mesh.tensor, mesh.context, mesh.data, ranks, mesh.expert, mesh.expert_tensor, ranks % grid));
  }

  const Placement& placement_;
  const ModelSpec& model_;
  const TrainingSpec& training_;
  std::int64_t blocks_;
  PlacementViolationList& list_;
};

}  // namespace

void check_fit(const Placement& placement, const ModelSpec& model, const TrainingSpec& training,
               PlacementViolationList& list) {
  FitCheck check(placement, model, training, list);
  for (std::size_t index = 0; index < placement.stages.size(); ++index) check.run(index);
}

}  // namespace specs
