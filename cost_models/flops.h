// Floating-point operations of training, under the conventions that publications use.
#pragma once

#include <cstdint>

#include "specs/language/model.h"
#include "specs/language/vocabulary.h"

namespace cost_models {

struct FlopConvention {
  bool causal = true;        ///< count what the mask leaves: half of the attention square, less with a window
  bool output_layer = true;  ///< logits count
};

/// Weights that a token is multiplied with: attention, dense FFN or router with top_k routed and the shared
/// experts, and the output layer. Norms, biases and look-ups are no products.
double product_parameters(const specs::ModelSpec& model, bool output_layer = true);

/// Forward FLOPs of scores and context of one token, all layers: 4 · sequence · heads · head_dim a layer
/// without a mask (2 · sequence · heads · (d_qk + d_v) in general).
double attention_forward_flops(const specs::ModelSpec& model, double sequence_length, bool causal);

/// Forward and backward of one token: 3 · (2 · product parameters + attention).
double model_flops_per_token(const specs::ModelSpec& model, double sequence_length,
                             const FlopConvention& convention = {});

/// What the device executes: full recomputation repeats the layers' forward pass, selective recomputation the
/// core attention's.
double hardware_flops_per_token(const specs::ModelSpec& model, double sequence_length,
                                specs::Recomputation recomputation, const FlopConvention& convention = {});

}  // namespace cost_models
