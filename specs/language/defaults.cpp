#include "specs/language/defaults.h"

#include <algorithm>
#include <cmath>

namespace specs {

namespace {

constexpr std::int64_t usual_vocabulary_multiple = 128;  ///< Megatron-LM's make-vocab-size-divisible-by
constexpr std::int64_t usual_global_batch = 256;
constexpr std::int64_t usual_sequence_length = 4096;
constexpr std::int64_t usual_steps = 1000;
constexpr std::int64_t most_steps = 1'000'000'000'000;

/// Llama's rule: two thirds of 4 · hidden, so that three matrices cost as much as two, rounded up to 256.
std::int64_t gated_width(std::int64_t hidden) {
  constexpr std::int64_t multiple = 256;
  const std::int64_t width = 8 * hidden / 3;
  return (width + multiple - 1) / multiple * multiple;
}

void fill_in_mixture(MixtureSpec& mixture, const FeedForwardSpec& feed_forward) {
  if (mixture.top_k == 0) mixture.top_k = std::min<std::int64_t>(2, mixture.experts);
  if (mixture.expert_hidden == 0) mixture.expert_hidden = feed_forward.hidden;
  if (mixture.shared_expert_hidden == 0)
    mixture.shared_expert_hidden = mixture.shared_experts * mixture.expert_hidden;
}

/// Drives of the nodes: the slowest node binds, the capacities add up.
void fill_in_storage(ClusterSpec& cluster) {
  StorageSpec& storage = cluster.storage;
  if (!storage.local) return;
  const auto slowest = [&cluster](double NodeSpec::*rate) {
    double slowest_rate = 0;
    for (const ClusterGroup& group : cluster.groups)
      if (slowest_rate == 0 || group.node.*rate < slowest_rate) slowest_rate = group.node.*rate;
    return slowest_rate;
  };
  if (storage.node_read_bytes_per_second == 0)
    storage.node_read_bytes_per_second = slowest(&NodeSpec::nvme_read_bytes_per_second);
  if (storage.node_write_bytes_per_second == 0)
    storage.node_write_bytes_per_second = slowest(&NodeSpec::nvme_write_bytes_per_second);
  if (storage.capacity_bytes == 0)
    for (const ClusterGroup& group : cluster.groups)
      storage.capacity_bytes += group.nodes * group.node.nvme_bytes;
}

std::int64_t steps_for(const TrainingSpec& training) {
  if (training.tokens <= 0) return usual_steps;
  const double per_step =
      static_cast<double>(training.global_batch) * static_cast<double>(training.sequence_length);
  const double steps = std::ceil(training.tokens / per_step);
  return static_cast<std::int64_t>(std::clamp(steps, 1.0, static_cast<double>(most_steps)));
}

}  // namespace

void fill_in(ModelSpec& model) {
  AttentionSpec& attention = model.attention;
  if (attention.kv_heads == 0) attention.kv_heads = attention.heads;
  if (attention.head_dim == 0 && attention.latent)
    attention.head_dim = attention.latent->content_head_dim + attention.latent->rotary_head_dim;
  if (attention.head_dim == 0 && attention.heads > 0 && model.hidden % attention.heads == 0)
    attention.head_dim = model.hidden / attention.heads;
  if (model.feed_forward.hidden == 0)
    model.feed_forward.hidden = model.feed_forward.gated ? gated_width(model.hidden) : 4 * model.hidden;
  if (model.mixture) fill_in_mixture(*model.mixture, model.feed_forward);
  if (model.vocabulary_multiple == 0) model.vocabulary_multiple = usual_vocabulary_multiple;
}

void fill_in(Experiment& experiment) {
  ModelSpec& model = experiment.model;
  TrainingSpec& training = experiment.training;
  fill_in(model);
  const bool learned = model.position_encoding == PositionEncoding::learned;
  if (training.sequence_length == 0)
    training.sequence_length = learned && model.positions > 0 ? model.positions : usual_sequence_length;
  if (learned && model.positions == 0) model.positions = training.sequence_length;
  if (training.global_batch == 0) training.global_batch = usual_global_batch;
  if (training.steps == 0) training.steps = steps_for(training);
  fill_in_storage(experiment.cluster);
}

}  // namespace specs
