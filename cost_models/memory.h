// Bytes on one rank at its peak, by class, under the rules of the software stack.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "cost_models/cost_inputs.h"
#include "cost_models/layer_cost.h"
#include "cost_models/pipeline.h"
#include "cost_models/stage_cost.h"
#include "specs/plan/cost_breakdown.h"

namespace cost_models {

inline constexpr std::size_t memory_classes = specs::EnumNames<specs::MemoryClass>::names.size();

struct RankMemory {
  std::array<double, memory_classes> device{};
  std::array<double, memory_classes> host{};  ///< of this rank
  double host_pinned = 0;                     ///< of this rank, beside `host`
  std::array<double, memory_classes> nvme{};  ///< of this rank
  double& of(specs::MemoryClass memory_class) { return device[static_cast<std::size_t>(memory_class)]; }
  double of(specs::MemoryClass memory_class) const { return device[static_cast<std::size_t>(memory_class)]; }
  double& host_of(specs::MemoryClass memory_class) { return host[static_cast<std::size_t>(memory_class)]; }
  double& nvme_of(specs::MemoryClass memory_class) { return nvme[static_cast<std::size_t>(memory_class)]; }
  /// Pinned included.
  double host_total() const;
  double nvme_total() const;
  /// What the framework's allocator handed out: everything but slack, context and communicators.
  double allocated() const;
  /// With the allocator's slack.
  double reserved() const;
  /// What the driver reports as used.
  double total() const;
};

/// Ranks that what a rank holds of each module kind is divided by. Copies that share the tokens divide
/// activations and not weights.
struct ModuleSplit {
  double tensor = 1;                                                  ///< the axis
  double attention = 1, feed_forward = 1, embedding = 1, output = 1;  ///< weights
  double attention_width = 1, feed_forward_width = 1, logits = 1;     ///< activations
  bool token_parallel_output = false;
};

ModuleSplit module_split(const specs::ModelSpec& model, const specs::ModuleTreatments& modules,
                         std::int64_t tensor);

/// One rank of a pipeline rank, as the memory formulas see it.
struct RankLoad {
  UnitCounts counts;                   ///< of all virtual stages together
  std::span<const UnitCounts> chunks;  ///< of each virtual stage; empty: they are equal
  RankParameters parameters;
  ShardKey shards;
  PipelineShape pipeline;
  double pipeline_rank = 0;
  /// That it stands for, itself and those after it, with the same units each: the fullest of them is meant.
  /// More than one only where a rank's memory is followed through its schedule (MemoryRules::dsrun);
  /// elsewhere the first is the fullest.
  std::int64_t alike_ranks = 1;
  double micro_batch = 1;
  ModuleSplit split;
  bool sequence_parallel = false;
};

/// Elements in a bucket of gradients; no more than there are.
double bucket_elements(const CostInputs& inputs, const RankLoad& load, double parameters);

RankMemory rank_memory(const CostInputs& inputs, const RankLoad& load);

/// Bytes that one dense layer keeps for the backward pass, for each token of a micro-batch on this rank, by
/// module. Megatron-Core with Transformer Engine; terms in the hidden size are divided by `residual_shards`
/// (the tensor degree under sequence parallelism), q, k, v and FFN by those of `split`: 4h (norm input and
/// output) + 2(q + k + v) + 2·attention output + 4·heads (log-sum-exp); 4h + 2f(2 + gated). Unfused attention
/// keeps scores, softmax and dropout mask, 5·heads·sequence/tensor more.
struct LayerActivations {
  double attention = 0;
  double feed_forward = 0;
  double mixture = 0;
  double scores = 0;       ///< part of `attention` that selective recomputation drops
  double layer_input = 0;  ///< what full recomputation keeps
};

LayerActivations layer_activations(const CostInputs& inputs, const ModuleSplit& split, double residual_shards,
                                   double context);

}  // namespace cost_models
