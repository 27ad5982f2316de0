// Everything a price depends on except the placement, resolved once: sizes of the model, rates of the devices
// and links, the constants that apply to this generation, stack and precision.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "cost_models/attention_kernel.h"
#include "cost_models/collectives.h"
#include "cost_models/constants.h"
#include "cost_models/gemm.h"
#include "cost_models/stack_profile.h"
#include "specs/language/experiment.h"

namespace cost_models {

class ScheduleMomentsMemo;

/// The model's sizes as the formulas use them.
struct ModelSizes {
  double hidden = 0;
  double heads = 0;
  double kv_heads = 0;
  double head_dim = 0;
  double ffn_hidden = 0;
  double gate_factor = 1;  ///< 2 for a gated FFN: two matrices into the inner width
  double vocabulary = 0;
  double sequence = 0;
  double causal = 0.5;  ///< mean share of the keys that a query sees, over the layers
  bool latent = false;
  double query_rank = 0;
  double key_value_rank = 0;
  double rotary_head_dim = 0;
  double query_key_dim = 0;
  double value_dim = 0;
  double experts = 0;
  double top_k = 0;
  double expert_hidden = 0;
  double shared_hidden = 0;
  double prediction_layers = 0;
  bool clamped_experts = false;  ///< GPT-OSS: clamped, biased gate in separate kernels
};

/// Host time of launching kernels, which joins device time in a p-norm.
struct LaunchRates {
  double layer_seconds = 0;   ///< forward, one dense layer
  double tensor_seconds = 0;  ///< each half layer, at tensor degree 4
  double tensor_exponent = 1;
  double mixture_layer_seconds = 0;
  double mixture_expert_seconds = 0;  ///< each local expert
  double overlap_power = 3;
  double synchronised_seconds = 0;  ///< of each pass through half a layer, beside everything else
};

struct MemoryBoundRates {
  double bytes_per_second = 0;  ///< as streaming kernels reach it
  double fusion = 1;
  double cast_bytes = 0;  ///< per element of a GEMM input; 0 in 16 bits
  double backward_factor = 2;
  double permutation_bytes = 0;  ///< per hidden element and routed token
  double expert_activation_factor = 1;
  double loss_bytes_per_logit = 0;
};

/// Shares of communication that other work does not hide.
struct ExposedShares {
  double tensor = 1;
  double tensor_backward = 1;
  double context = 1;
  double expert = 1;
  double pipeline = 1;
  double data = 1;
  double gather_interference = 0;
};

/// Link rates by use, since kernels of different libraries reach different shares of the same wire.
struct LinkSet {
  LinkRates tensor;
  LinkRates context;
  LinkRates expert;
  LinkRates pipeline;
  LinkRates data;
};

/// Sizes that no formula gives.
struct MemoryConstants {
  double workspace_bytes = 0;
  double mixture_backward_copies = 0;
  double context_bytes = 0;
  double communicator_bytes = 0;
  double bucket_elements = 0;  ///< of gradients, where a placement names none; 0: all
  double loss_bytes_per_logit = 0;
  double eager_loss_bytes_per_logit = 0;
  double parallel_loss_bytes_per_logit = 0;
  double compiled_loss_bytes_per_logit = 0;
  double slack = 1;             ///< reserved over allocated bytes
  double activation_slack = 1;  ///< reserved for activations over what they need, beside `slack`
};

struct CostInputs {
  specs::ModelSpec model;
  specs::TrainingSpec training;
  specs::ClusterSpec cluster;
  StackProfile profile;
  std::int64_t device_group = 0;

  ModelSizes sizes;
  GemmRates gemm;        ///< at the training precision
  GemmRates gemm_16bit;  ///< output layer and router
  double grouped_gemm_efficiency = 1;
  AttentionRates attention;
  LaunchRates launch;
  MemoryBoundRates memory_bound;
  ExposedShares exposed;
  MemoryConstants memory;
  LinkSet links;
  double recompute_fraction = 1;          ///< of a first forward pass
  double recompute_fraction_sharded = 1;  ///< under ZeRO-3
  double recompute_operators = 1;
  double optimizer_traffic = 1;
  double fixed_seconds = 0;
  double power_fraction = 1;       ///< mean draw of a device over its limit
  double interval_half_width = 0;  ///< of the natural logarithm of the step time, 80 %
  double tensor_micro_batch_seconds = 0;
  double activation_offload_exposed = 0;
  double cpu_adam_parameters_per_second = 0;
  bool devices_are_cores = false;  ///< of the host
  double host_link_bytes_per_second = 0;
  double nvme_read_bytes_per_second = 0;  ///< of a node, like the next
  double nvme_write_bytes_per_second = 0;
  double devices_per_node = 8;  ///< that share host memory and network cards
  double element_bytes = 2;     ///< activations and parameters
  double gradient_bytes = 2;    ///< as accumulated
  double reduction_bytes = 2;   ///< as reduced between data-parallel ranks
  double accumulated_bytes =
      0;  ///< read and written for each weight-gradient element of each micro-batch; 0: by the GEMM

  std::shared_ptr<const ScheduleMomentsMemo> moments;  ///< never null; copies share it
};

/// Throws std::runtime_error where the catalog's constants lack a name that every table holds.
CostInputs make_cost_inputs(const specs::Experiment& experiment, const StackProfile& profile,
                            const ConstantTable& constants, std::int64_t device_group = 0);

/// Replaces what follows from the constants, and nothing else.
void resolve_constants(const ConstantTable& constants, CostInputs& inputs);

}  // namespace cost_models
