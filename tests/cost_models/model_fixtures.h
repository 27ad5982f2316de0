// Experiments that the tests of the cost models share.
#pragma once

#include "specs/language/experiment.h"
#include "specs/plan/placement.h"

namespace cost_models::testing {

inline specs::ModelSpec gpt(std::int64_t layers, std::int64_t hidden, std::int64_t heads,
                            std::int64_t vocabulary, std::int64_t positions) {
  specs::ModelSpec model;
  model.layers = layers;
  model.hidden = hidden;
  model.attention.heads = model.attention.kv_heads = heads;
  model.attention.head_dim = hidden / heads;
  model.attention.qkv_bias = model.attention.output_bias = true;
  model.feed_forward.hidden = 4 * hidden;
  model.feed_forward.bias = true;
  model.vocabulary = vocabulary;
  model.positions = positions;
  return model;
}

inline specs::ModelSpec llama(std::int64_t layers, std::int64_t hidden, std::int64_t heads,
                              std::int64_t kv_heads, std::int64_t ffn_hidden, std::int64_t vocabulary) {
  specs::ModelSpec model;
  model.layers = layers;
  model.hidden = hidden;
  model.attention.heads = heads;
  model.attention.kv_heads = kv_heads;
  model.attention.head_dim = hidden / heads;
  model.feed_forward.hidden = ffn_hidden;
  model.feed_forward.gated = true;
  model.feed_forward.activation = specs::Activation::silu;
  model.vocabulary = vocabulary;
  model.position_encoding = specs::PositionEncoding::rotary;
  model.normalization = specs::Normalization::rms_norm;
  model.norm_bias = false;
  model.tied_embeddings = false;
  return model;
}

inline specs::ModelSpec mixtral_8x7b() {
  specs::ModelSpec model = llama(32, 4096, 32, 8, 14336, 32000);
  model.mixture.emplace();
  model.mixture->experts = 8;
  model.mixture->top_k = 2;
  model.mixture->expert_hidden = 14336;
  return model;
}

inline specs::ModelSpec deepseek_v3() {
  specs::ModelSpec model = llama(61, 7168, 128, 128, 18432, 129280);
  model.attention.latent.emplace();
  model.attention.latent->query_rank = 1536;
  model.mixture.emplace();
  model.mixture->experts = 256;
  model.mixture->top_k = 8;
  model.mixture->expert_hidden = 2048;
  model.mixture->shared_experts = 1;
  model.mixture->shared_expert_hidden = 2048;
  model.mixture->first_dense_layers = 3;
  return model;
}

inline specs::ClusterSpec a100_cluster(std::int64_t nodes) {
  specs::ClusterGroup group;
  group.nodes = nodes;
  group.node.devices = 8;
  group.node.link_bytes_per_second = 300e9;
  group.node.host_memory_bytes = 2048ll << 30;
  group.node.device.name = "a100-sxm-80gb";
  group.node.device.generation = "ampere";
  group.node.device.memory_bytes = 80ll << 30;
  group.node.device.memory_bytes_per_second = 2.039e12;
  group.node.device.peak_flops = {{specs::Precision::bf16, 312e12}, {specs::Precision::fp16, 312e12}};
  group.node.device.multiprocessors = 108;
  specs::ClusterSpec cluster;
  cluster.groups = {group};
  cluster.network.kind = specs::NetworkKind::infiniband;
  cluster.network.node_bytes_per_second = 200e9;
  return cluster;
}

inline specs::Experiment experiment(specs::ModelSpec model, std::int64_t nodes, std::int64_t global_batch,
                                    std::int64_t sequence_length,
                                    const std::string& stack = "megatron-core") {
  specs::Experiment result;
  result.model = std::move(model);
  result.cluster = a100_cluster(nodes);
  result.training.global_batch = global_batch;
  result.training.sequence_length = sequence_length;
  result.training.stack = stack;
  return result;
}

}  // namespace cost_models::testing
