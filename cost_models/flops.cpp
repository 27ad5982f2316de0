#include "cost_models/flops.h"

#include <algorithm>

#include "cost_models/attention_kernel.h"
#include "cost_models/parameters.h"

namespace cost_models {
namespace {

double plain_attention_weights(const specs::ModelSpec& model) {
  const specs::AttentionSpec& attention = model.attention;
  return static_cast<double>(model.hidden * attention.head_dim *
                             (2 * attention.heads + 2 * attention.kv_heads));
}

double attention_weights(const specs::ModelSpec& model) {
  if (!model.attention.latent) return plain_attention_weights(model) * (model.encoder_layers > 0 ? 2 : 1);
  const specs::LatentAttention& latent = *model.attention.latent;
  const std::int64_t heads = model.attention.heads;
  const std::int64_t query = heads * (latent.rotary_head_dim + latent.content_head_dim);
  std::int64_t weights = latent.query_rank > 0 ? model.hidden * latent.query_rank + latent.query_rank * query
                                               : model.hidden * query;
  weights += model.hidden * (latent.key_value_rank + latent.rotary_head_dim);
  weights += latent.key_value_rank * heads * (latent.content_head_dim + latent.value_head_dim);
  weights += heads * latent.value_head_dim * model.hidden;
  return static_cast<double>(weights);
}

double feed_forward_weights(const specs::ModelSpec& model, std::int64_t width) {
  return static_cast<double>((model.feed_forward.gated ? 3 : 2) * model.hidden * width);
}

double mixture_weights(const specs::ModelSpec& model) {
  const specs::MixtureSpec& mixture = *model.mixture;
  return static_cast<double>(model.hidden * mixture.experts) +
         static_cast<double>(mixture.top_k) * feed_forward_weights(model, mixture.expert_hidden) +
         feed_forward_weights(model, mixture.shared_expert_hidden);
}

double layer_weights(const specs::ModelSpec& model) {
  const double mixtures = static_cast<double>(mixture_layers(model, 0, model.layers));
  const double layers = static_cast<double>(model.layers);
  double weights = layers * attention_weights(model) +
                   (layers - mixtures) * feed_forward_weights(model, model.feed_forward.hidden);
  if (mixtures > 0) weights += mixtures * mixture_weights(model);
  weights += static_cast<double>(model.encoder_layers) *
             (plain_attention_weights(model) + feed_forward_weights(model, model.feed_forward.hidden));
  return weights;
}

double output_weights(const specs::ModelSpec& model) {
  const std::int64_t width = model.embedding_width > 0 ? model.embedding_width : model.hidden;
  return static_cast<double>(model.vocabulary * width);
}

}  // namespace

double product_parameters(const specs::ModelSpec& model, bool output_layer) {
  return layer_weights(model) + (output_layer ? output_weights(model) : 0);
}

double attention_forward_flops(const specs::ModelSpec& model, double sequence_length, bool causal) {
  const specs::AttentionSpec& attention = model.attention;
  const double widths = attention.latent ? static_cast<double>(attention.latent->rotary_head_dim +
                                                               attention.latent->content_head_dim +
                                                               attention.latent->value_head_dim)
                                         : 2 * static_cast<double>(attention.head_dim);
  const double square = 2 * sequence_length * static_cast<double>(attention.heads) * widths;
  const double layers = static_cast<double>(model.layers) * (model.encoder_layers > 0 ? 2 : 1) +
                        static_cast<double>(model.encoder_layers);
  if (!causal) return layers * square;
  const double sliding =
      attention.sliding_window > 0
          ? layers / static_cast<double>(std::max<std::int64_t>(1, attention.sliding_every))
          : 0;
  const double window = static_cast<double>(attention.sliding_window);
  return square * (sliding * causal_share(sequence_length, window) + (layers - sliding) * 0.5);
}

double model_flops_per_token(const specs::ModelSpec& model, double sequence_length,
                             const FlopConvention& convention) {
  return 3 * (2 * product_parameters(model, convention.output_layer) +
              attention_forward_flops(model, sequence_length, convention.causal));
}

double hardware_flops_per_token(const specs::ModelSpec& model, double sequence_length,
                                specs::Recomputation recomputation, const FlopConvention& convention) {
  const double attention = attention_forward_flops(model, sequence_length, convention.causal);
  double repeated = 0;
  if (recomputation == specs::Recomputation::full) repeated = 2 * layer_weights(model) + attention;
  if (recomputation == specs::Recomputation::selective) repeated = attention;
  return model_flops_per_token(model, sequence_length, convention) + repeated;
}

}  // namespace cost_models
