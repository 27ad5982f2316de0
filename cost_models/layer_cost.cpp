#include "cost_models/layer_cost.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

namespace cost_models {
namespace {

using specs::TimeTerm;

/// The parts of a unit's time on the device, before launch joins them.
struct UnitParts {
  PassSeconds products;     ///< GEMMs and core attention
  double memory_bound = 0;  ///< forward; backward is backward_factor times it
  double cast = 0;          ///< forward; backward twice
  double accumulation = 0;  ///< backward only
  PassSeconds tensor;       ///< exposed
  PassSeconds context;
  PassSeconds expert;
  double launch_forward = 0;
  double launch_backward = 0;
};

double power_norm(double device, double host, double power) {
  if (host <= 0) return device;
  if (device <= 0) return host;
  const double larger = std::max(device, host);
  const double ratio = std::min(device, host) / larger;
  return larger * std::pow(1 + std::pow(ratio, power), 1 / power);
}

class LayerPricer {
 public:
  LayerPricer(const CostInputs& inputs, const LayerKey& key)
      : in_(inputs),
        sizes_(inputs.sizes),
        key_(key),
        tokens_(static_cast<double>(key.micro_batch) * inputs.sizes.sequence /
                static_cast<double>(key.context)),
        tensor_(static_cast<double>(key.tensor)),
        context_(static_cast<double>(key.context)),
        expert_(static_cast<double>(key.expert)),
        expert_tensor_(static_cast<double>(key.expert_tensor)) {
    degrees_ = shard_degrees(inputs.model, key.modules, key.tensor);
    token_parallel_ = key.modules.output_mode == specs::OutputLayerMode::token_parallel;
    degrees_.expert = key.expert;
    degrees_.expert_tensor = key.expert_tensor;
  }

  LayerCosts price_without_mixture() const {
    LayerCosts costs;
    costs.attention = attention(false);
    if (in_.model.encoder_layers > 0) costs.encoder_attention = attention(true);
    costs.feed_forward = feed_forward();
    costs.embedding = embedding();
    costs.output = output();
    costs.prediction = prediction_parameters(in_.model);
    costs.tied_table = {tied_table_parameters(in_.model, degrees_), 0, 0};
    if (token_parallel_) costs.tied_table.partial = tied_partial();
    return costs;
  }
  UnitCost price_mixture() const { return in_.model.mixture ? mixture() : UnitCost{}; }

 private:
  double bandwidth() const { return in_.memory_bound.bytes_per_second; }
  double element() const { return in_.element_bytes; }
  /// Width of the residual stream where norms and residuals work on it.
  double residual_width() const { return sizes_.hidden / (key_.sequence_parallel ? tensor_ : 1); }

  /// A module on ranks of the tensor axis: its weights over `degree` of them, the tokens of a micro-batch
  /// whole on each copy or shared by the copies.
  struct Copies {
    double degree = 1;
    double share = 1;  ///< of the tokens, on one copy
  };
  Copies copies(std::int64_t degree, specs::ReplicaWork work) const {
    const double over = static_cast<double>(degree);
    return {over, work == specs::ReplicaWork::token_share ? over / tensor_ : 1};
  }
  Copies attention_copies() const { return copies(degrees_.attention_tensor, key_.modules.attention_work); }
  Copies feed_forward_copies() const {
    return copies(degrees_.feed_forward_tensor, key_.modules.feed_forward_work);
  }

  RankGroup tensor_group(double ranks, double apart = 1) const {
    return rank_group(ranks, apart * static_cast<double>(key_.tensor_stride),
                      in_.links.tensor.domain_devices);
  }
  /// Half of an all-reduce of the residual stream, or a share of it.
  CollectiveSeconds one_way(double share, const RankGroup& group) const {
    const double bytes = share * element() * tokens_ * sizes_.hidden;
    return key_.sequence_parallel || in_.links.tensor.measured.empty()
               ? collective_seconds(Collective::all_gather, bytes, group, in_.links.tensor)
               : half(collective_seconds(Collective::all_reduce, bytes, group, in_.links.tensor));
  }

  // Of a module with copies. Under sequence parallelism each copy gathers the tokens it works on, all from
  // all ranks of the axis or its share from its own ranks, and scatters the sums; an attention that shares
  // whole sequences first trades positions for them. Without, all ranks have the stream and must have it
  // again: each copy sums its share, then the copies gather.
  PassSeconds copy_exchange(const Copies& held, double blocks, bool whole_sequences) const {
    if (held.degree == tensor_) return tensor_exchange(held.degree, blocks);
    const ExposedShares& exposed = in_.exposed;
    const double number = tensor_ / held.degree;
    const CollectiveSeconds own = one_way(held.share, tensor_group(held.degree));
    const bool shares = held.share < 1;
    if (!key_.sequence_parallel) {
      const CollectiveSeconds joined =
          shares ? collective_seconds(Collective::all_gather, element() * tokens_ * sizes_.hidden,
                                      tensor_group(number, held.degree), in_.links.tensor)
                 : CollectiveSeconds{};
      const double latency = own.latency + joined.latency;
      return {
          blocks * ((2 * own.transfer + joined.transfer) * exposed.tensor + latency),
          blocks * (2 * own.transfer * exposed.tensor_backward + joined.transfer * exposed.tensor + latency)};
    }
    const CollectiveSeconds entry = shares ? own : one_way(1, tensor_group(tensor_));
    const double latency = entry.latency;
    PassSeconds seconds{blocks * ((entry.transfer + own.transfer) * exposed.tensor + latency),
                        blocks * (entry.transfer * exposed.tensor +
                                  (entry.transfer + own.transfer) * exposed.tensor_backward + latency)};
    if (shares && whole_sequences) {
      const double bytes = element() * tokens_ * sizes_.hidden / tensor_;
      const double trade =
          collective_seconds(Collective::all_to_all, bytes, tensor_group(tensor_), in_.links.tensor).total();
      seconds += {blocks * 2 * trade * exposed.tensor, blocks * 2 * trade * exposed.tensor};
    }
    return seconds;
  }

  /// Σ of gradients over the copies that share the tokens.
  void note_partial(double number, RankParameters& parameters) const {
    parameters.partial =
        static_cast<std::int64_t>(static_cast<double>(parameters.dense) * (number - 1) / number);
  }
  void note_copies(const Copies& held, RankParameters& parameters) const {
    if (held.share < 1) note_partial(1 / held.share, parameters);
  }

  // One all-gather and one reduce-scatter (or one all-reduce) of the residual stream each way; with sequence
  // parallelism the backward pass gathers the layer input once more.
  PassSeconds tensor_exchange(double degree, double blocks) const {
    if (degree <= 1) return {};
    const CollectiveSeconds one = one_way(1, tensor_group(degree));
    // Backward, sequence parallelism gathers the output's gradient before any product can begin; what it
    // gathers and scatters of the input runs beside the products, like the all-reduce without it.
    const double backward = key_.sequence_parallel ? in_.exposed.tensor + 2 * in_.exposed.tensor_backward
                                                   : 2 * in_.exposed.tensor_backward;
    return {blocks * (2 * one.transfer * in_.exposed.tensor + one.latency),
            blocks * (backward * one.transfer + one.latency)};
  }
  static CollectiveSeconds half(CollectiveSeconds whole) { return {whole.latency / 2, whole.transfer / 2}; }

  double tensor_launch(double degree) const {
    return degree > 1 ? in_.launch.tensor_seconds * std::pow(degree / 4, in_.launch.tensor_exponent) : 0;
  }
  void launch(UnitParts& parts, double degree, double extra) const {
    parts.launch_forward = in_.launch.layer_seconds / 2 + tensor_launch(degree) + extra;
    parts.launch_backward = 1.2 * in_.launch.layer_seconds / 2 + tensor_launch(degree) + 1.2 * extra;
  }

  double accumulation_seconds(double weights) const {
    return key_.accumulates ? weights * in_.accumulated_bytes / bandwidth() : 0;
  }

  UnitCost finish(const UnitParts& parts, TimeTerm product_term) const {
    const double backward_memory = in_.memory_bound.backward_factor * parts.memory_bound;
    const double device_forward = parts.products.forward + parts.memory_bound + parts.cast +
                                  parts.tensor.forward + parts.context.forward + parts.expert.forward;
    const double device_backward = parts.products.backward + backward_memory + 2 * parts.cast +
                                   parts.accumulation + parts.tensor.backward + parts.context.backward +
                                   parts.expert.backward;
    UnitCost cost;
    cost.forward = power_norm(device_forward, parts.launch_forward, in_.launch.overlap_power) +
                   in_.launch.synchronised_seconds;
    cost.backward = power_norm(device_backward, parts.launch_backward, in_.launch.overlap_power) +
                    in_.launch.synchronised_seconds;
    if (device_backward > 0)
      cost.weight_gradient = cost.backward *
                             (parts.products.weight_gradient + parts.cast + parts.accumulation) /
                             device_backward;
    at(cost.terms, product_term) = parts.products.forward + parts.products.backward;
    at(cost.terms, TimeTerm::memory_bound) =
        parts.memory_bound + backward_memory + 3 * parts.cast + parts.accumulation;
    at(cost.terms, TimeTerm::tensor_communication) = parts.tensor.forward + parts.tensor.backward;
    at(cost.terms, TimeTerm::context_communication) = parts.context.forward + parts.context.backward;
    at(cost.terms, TimeTerm::expert_communication) = parts.expert.forward + parts.expert.backward;
    // A difference of equal sums may round below zero, which no plan can hold.
    at(cost.terms, TimeTerm::launch_overhead) =
        std::max(0.0, cost.forward + cost.backward - device_forward - device_backward);
    return cost;
  }

  static double& module(UnitCost& cost, specs::RecomputedModule which) {
    return cost.recompute[static_cast<std::size_t>(std::countr_zero(static_cast<std::uint32_t>(which)))];
  }

  // torchtitan's per-operator policy keeps every second product and the reduce-scatters, and repeats the
  // other products and the all-gathers.
  double repeated_by_operator_policy(const UnitParts& parts, const PassSeconds& core) const {
    const bool keeps_every_second = in_.profile.memory == MemoryRules::fsdp2;
    return keeps_every_second ? 0.5 * (parts.products.forward - core.forward) + 0.5 * parts.tensor.forward
                              : 0;
  }

  PassSeconds core_attention() const {
    AttentionWork work;
    work.sequences = static_cast<double>(key_.micro_batch) * attention_copies().share;
    work.query_tokens = sizes_.sequence / context_;
    work.key_tokens = sizes_.sequence;
    work.heads = sizes_.heads / static_cast<double>(degrees_.attention_tensor);
    work.query_key_dim = sizes_.query_key_dim;
    work.value_dim = sizes_.value_dim;
    work.context_ranks = context_;
    return in_.training.attention == specs::AttentionImplementation::flash
               ? flash_attention_seconds(work, sizes_.causal, in_.attention)
               : unfused_attention_seconds(work, in_.attention);
  }

  PassSeconds attention_projections(double& latent_up) const {
    const double t = static_cast<double>(degrees_.attention_tensor);
    const double h = sizes_.hidden;
    const double tokens = tokens_ * attention_copies().share;
    if (!sizes_.latent) {
      const double kv_heads = static_cast<double>(kv_heads_per_rank(in_.model, degrees_.attention_tensor));
      PassSeconds seconds =
          linear_seconds(tokens, (sizes_.heads / t + 2 * kv_heads) * sizes_.head_dim, h, in_.gemm);
      seconds += linear_seconds(tokens, h, sizes_.heads * sizes_.head_dim / t, in_.gemm);
      return seconds;
    }
    const double query_width = sizes_.heads * sizes_.query_key_dim / t;
    const double content_dim = sizes_.query_key_dim - sizes_.rotary_head_dim;
    PassSeconds seconds;
    if (sizes_.query_rank > 0) {
      seconds += linear_seconds(tokens, sizes_.query_rank, h, in_.gemm);
      const PassSeconds up = linear_seconds(tokens, query_width, sizes_.query_rank, in_.gemm);
      latent_up += up.forward;
      seconds += up;
    } else {
      seconds += linear_seconds(tokens, query_width, h, in_.gemm);
    }
    seconds += linear_seconds(tokens, sizes_.key_value_rank + sizes_.rotary_head_dim, h, in_.gemm);
    const PassSeconds up = linear_seconds(tokens, sizes_.heads * (content_dim + sizes_.value_dim) / t,
                                          sizes_.key_value_rank, in_.gemm);
    latent_up += up.forward;
    seconds += up;
    seconds += linear_seconds(tokens, h, sizes_.heads * sizes_.value_dim / t, in_.gemm);
    return seconds;
  }

  // Keys and values go once round the ring of context ranks (gradients come back with them).
  PassSeconds context_exchange() const {
    if (context_ <= 1) return {};
    const double t = static_cast<double>(degrees_.attention_tensor);
    const double width = sizes_.latent ? sizes_.heads * (sizes_.query_key_dim + sizes_.value_dim) / t
                                       : 2 * sizes_.kv_heads * sizes_.head_dim / t;
    const RankGroup group =
        rank_group(context_, static_cast<double>(key_.context_stride), in_.links.context.domain_devices);
    const LinkRates& links = in_.links.context;
    // A hop that leaves the domain paces the whole ring.
    const double rate = group.domains() > 1 ? links.network_bytes_per_second / slowdown_across(group, links)
                                            : links.link_bytes_per_second;
    const double seconds =
        element() * tokens_ * attention_copies().share * width * (context_ - 1) / rate * in_.exposed.context;
    return {seconds, 2 * seconds};
  }

  double attention_flops() const {
    const double t = static_cast<double>(degrees_.attention_tensor);
    const double sequences = static_cast<double>(key_.micro_batch) * attention_copies().share;
    const double score = 2 * sequences * sizes_.sequence / context_ * sizes_.sequence * sizes_.heads / t *
                         (sizes_.query_key_dim + sizes_.value_dim) * sizes_.causal;
    return 3 * score;
  }

  // A decoder layer of an encoder-decoder attends twice: to itself and to the encoder's output.
  UnitCost attention(bool encoder) const {
    const Copies held = attention_copies();
    const double t = held.degree;
    UnitParts parts;
    double latent_up = 0;
    parts.products = attention_projections(latent_up);
    const PassSeconds core = core_attention();
    parts.products += core;
    const double passes = in_.model.encoder_layers > 0 && !encoder ? 2 : 1;
    parts.products = parts.products * passes;
    const double heads_width = held.share * (sizes_.heads + 2 * sizes_.kv_heads) * sizes_.head_dim / t;
    double width = 6 * residual_width() + 2 * heads_width;
    if (sizes_.latent) width += held.share * sizes_.heads * (sizes_.query_key_dim + 2 * sizes_.value_dim) / t;
    parts.memory_bound = passes * in_.memory_bound.fusion * tokens_ * element() * width / bandwidth();
    parts.cast = in_.memory_bound.cast_bytes * tokens_ *
                 (residual_width() + held.share * sizes_.heads * sizes_.head_dim / t) / bandwidth();
    RankParameters parameters = encoder ? encoder_attention_parameters(in_.model, degrees_)
                                        : attention_parameters(in_.model, degrees_);
    parts.accumulation = accumulation_seconds(static_cast<double>(parameters.dense));
    note_copies(held, parameters);
    parts.tensor = copy_exchange(held, passes, true);
    parts.context = context_exchange();
    launch(parts, t, 0);
    UnitCost cost = finish(parts, TimeTerm::attention);
    // Under flash this runtime leaves the repetition to the kernel, which does it in any case.
    const bool left_to_kernel = in_.profile.memory == MemoryRules::dsrun &&
                                in_.training.attention == specs::AttentionImplementation::flash;
    module(cost, specs::RecomputedModule::core_attention) = left_to_kernel ? 0 : core.forward;
    module(cost, specs::RecomputedModule::normalization) = in_.recompute_operators * parts.memory_bound;
    module(cost, specs::RecomputedModule::element_wise) =
        in_.recompute_operators * parts.memory_bound + repeated_by_operator_policy(parts, core);
    module(cost, specs::RecomputedModule::latent_up_projection) = latent_up;
    cost.parameters = parameters;
    cost.flops = 6 * tokens_ * held.share * static_cast<double>(parameters.dense) + attention_flops();
    return cost;
  }

  UnitCost feed_forward() const {
    const Copies held = feed_forward_copies();
    const double t = held.degree;
    const double width = sizes_.ffn_hidden / t;
    const double tokens = tokens_ * held.share;
    UnitParts parts;
    parts.products = linear_seconds(tokens, width * sizes_.gate_factor, sizes_.hidden, in_.gemm);
    parts.products += linear_seconds(tokens, sizes_.hidden, width, in_.gemm);
    parts.memory_bound =
        in_.memory_bound.fusion * tokens * element() * width * (1 + sizes_.gate_factor) / bandwidth();
    parts.cast = in_.memory_bound.cast_bytes * tokens_ *
                 (residual_width() + held.share * width * sizes_.gate_factor) / bandwidth();
    RankParameters parameters = feed_forward_parameters(in_.model, degrees_);
    note_copies(held, parameters);
    parts.accumulation = accumulation_seconds(static_cast<double>(parameters.dense));
    parts.tensor = copy_exchange(held, 1, false);
    launch(parts, t, 0);
    UnitCost cost = finish(parts, TimeTerm::feed_forward);
    module(cost, specs::RecomputedModule::element_wise) =
        in_.recompute_operators * parts.memory_bound + repeated_by_operator_policy(parts, {});
    module(cost, specs::RecomputedModule::feed_forward) = parts.products.forward + parts.memory_bound;
    cost.parameters = parameters;
    cost.flops = 6 * tokens * static_cast<double>(parameters.dense);
    return cost;
  }

  // Tokens travel to the ranks that hold their experts and back: two all-to-alls each way. Between nodes a
  // token is sent once to each node that needs it, not once to each expert.
  PassSeconds expert_exchange(double tokens) const {
    if (expert_ <= 1) return {};
    const LinkRates& links = in_.links.expert;
    const double bytes = element() * tokens * sizes_.top_k * sizes_.hidden * (expert_ - 1) / expert_;
    const double node = std::max(links.domain_devices / expert_tensor_, 1.0);
    const bool leaves = expert_ * expert_tensor_ > links.domain_devices;
    const double outside = leaves ? 1 - node / expert_ : 0;
    const double copies = leaves ? std::min(1.0, std::ceil(expert_ / node) / std::max(sizes_.top_k, 1.0)) : 1;
    double between = outside * copies;
    for (const NetworkTier& tier : links.tiers) {
      const double held = tier.devices / expert_tensor_;
      if (expert_ > held) between = std::max(between, (1 - held / expert_) * copies * tier.slowdown);
    }
    const double transfer =
        bytes * ((1 - outside) / links.link_bytes_per_second + between / links.network_bytes_per_second);
    const double one = in_.exposed.expert * transfer + links.call_seconds;
    return {2 * one, 2 * one};
  }

  UnitCost mixture() const {
    const Copies held = feed_forward_copies();  // of the shared experts
    const double t = held.degree;
    const double local_experts = sizes_.experts / expert_;
    // Tokens that enter the dispatcher on this rank, and rows that reach each of its experts under even
    // routing.
    const double entering = tokens_ / (expert_tensor_ < tensor_ ? tensor_ / expert_tensor_ : 1);
    const double rows = entering * sizes_.top_k * expert_ / sizes_.experts;
    const double width = sizes_.expert_hidden / expert_tensor_;
    UnitParts parts;
    PassSeconds experts =
        linear_seconds(rows, width * sizes_.gate_factor, sizes_.hidden, in_.gemm, local_experts);
    experts += linear_seconds(rows, sizes_.hidden, width, in_.gemm, local_experts);
    parts.products = experts * (1 / in_.grouped_gemm_efficiency);
    const double sent = tokens_ / tensor_;
    double bytes =
        0.5 * (entering + sent) * sizes_.top_k * in_.memory_bound.permutation_bytes * sizes_.hidden +
        entering * sizes_.top_k * in_.memory_bound.fusion * 2 * element() * width * sizes_.gate_factor *
            in_.memory_bound.expert_activation_factor;
    if (sizes_.shared_hidden > 0) {
      const double shared = sizes_.shared_hidden / t;
      const double tokens = tokens_ * held.share;
      parts.products += linear_seconds(tokens, shared * sizes_.gate_factor, sizes_.hidden, in_.gemm);
      parts.products += linear_seconds(tokens, sizes_.hidden, shared, in_.gemm);
      bytes += in_.memory_bound.fusion * tokens * element() * shared * (1 + sizes_.gate_factor);
    }
    parts.memory_bound = bytes / bandwidth();
    parts.cast = in_.memory_bound.cast_bytes * entering * sizes_.top_k *
                 (sizes_.hidden + width * sizes_.gate_factor) / bandwidth();
    RankParameters parameters = mixture_parameters(in_.model, degrees_);
    note_copies(held, parameters);
    parts.accumulation = accumulation_seconds(static_cast<double>(parameters.total()));
    parts.expert = expert_exchange(sent);
    if (expert_tensor_ > 1) parts.tensor = tensor_exchange(tensor_, sizes_.top_k);
    launch(parts, t, in_.launch.mixture_layer_seconds + in_.launch.mixture_expert_seconds * local_experts);
    UnitCost cost = finish(parts, TimeTerm::feed_forward);
    module(cost, specs::RecomputedModule::element_wise) = in_.recompute_operators * parts.memory_bound;
    module(cost, specs::RecomputedModule::expert_activation) = in_.recompute_operators * parts.memory_bound;
    cost.parameters = parameters;
    cost.flops = 6 * (tokens_ * held.share * static_cast<double>(parameters.dense) +
                      rows * static_cast<double>(parameters.expert));
    return cost;
  }

  // A rank looks up what its rows hold of the tokens; the sum over the ranks of a table is the stream.
  UnitCost embedding() const {
    UnitCost cost;
    const Copies held = in_.model.tied_embeddings
                            ? copies(degrees_.embedding_tensor, specs::ReplicaWork::redundant)
                            : copies(degrees_.embedding_tensor, key_.modules.embedding_work);
    const double memory = held.share * 6 * element() * tokens_ * sizes_.hidden / bandwidth();
    double exchange = 0;
    if (held.degree > 1)
      exchange =
          2 * collective_seconds(Collective::all_gather, held.share * element() * tokens_ * sizes_.hidden,
                                 tensor_group(held.degree), in_.links.tensor)
                  .transfer;
    if (held.share < 1 && !key_.sequence_parallel)
      exchange += collective_seconds(Collective::all_gather, element() * tokens_ * sizes_.hidden,
                                     tensor_group(1 / held.share, held.degree), in_.links.tensor)
                      .transfer;
    cost.forward = memory / 2 + exchange;
    cost.backward = memory / 2;
    cost.weight_gradient = memory / 2;  // the table's own gradient
    at(cost.terms, TimeTerm::embedding) = memory;
    at(cost.terms, TimeTerm::tensor_communication) = exchange;
    cost.parameters = embedding_parameters(in_.model, degrees_);
    note_copies(held, cost.parameters);
    if (in_.model.tied_embeddings && token_parallel_) cost.parameters.partial = tied_partial();
    return cost;
  }

  /// Of a token-parallel output layer that reads the embedding's table.
  std::int64_t tied_partial() const {
    RankParameters table{tied_table_parameters(in_.model, degrees_), 0, 0};
    note_partial(tensor_, table);
    return table.partial;
  }

  UnitCost output() const {
    UnitCost cost;
    const double t = static_cast<double>(degrees_.output_tensor);
    const double tokens = token_parallel_ ? tokens_ / tensor_ : tokens_;
    const double rows = static_cast<double>(padded_vocabulary(in_.model, degrees_.output_tensor)) / t;
    const PassSeconds logits = linear_seconds(tokens, rows, sizes_.hidden, in_.gemm_16bit);
    const double memory = (in_.memory_bound.loss_bytes_per_logit * element() / 2 * tokens * rows +
                           6 * element() * tokens * sizes_.hidden) /
                          bandwidth();
    const double latency =
        t > 1 ? 2 * (in_.links.tensor.call_seconds + in_.links.tensor.link_step_seconds * (t - 1)) : 0;
    const double passes = 1 + sizes_.prediction_layers;
    cost.forward = passes * (logits.forward + memory / 2 + latency / 2);
    cost.backward = passes * (logits.backward + memory / 2 + latency / 2);
    cost.weight_gradient = passes * logits.weight_gradient;
    at(cost.terms, TimeTerm::output_layer) = passes * (logits.forward + logits.backward + memory);
    at(cost.terms, TimeTerm::tensor_communication) = passes * latency;
    cost.flops = passes * 6 * tokens * rows * sizes_.hidden;
    cost.parameters = output_parameters(in_.model, degrees_);
    if (token_parallel_) note_partial(tensor_, cost.parameters);
    return cost;
  }

  const CostInputs& in_;
  const ModelSizes& sizes_;
  const LayerKey& key_;
  double tokens_;  ///< of one micro-batch on this context rank
  double tensor_, context_, expert_, expert_tensor_;
  ShardDegrees degrees_;
  bool token_parallel_ = false;
};

}  // namespace

std::size_t hash_value(const LayerKey& key) {
  std::size_t hash = 0;
  const auto mix = [&hash](std::int64_t value) {
    hash = (hash ^ static_cast<std::size_t>(value)) * 0x9E3779B97F4A7C15ull;
    hash ^= hash >> 29;
  };
  for (const std::int64_t value :
       {key.tensor, key.context, key.expert, key.expert_tensor, key.micro_batch, key.modules.attention_tensor,
        key.modules.feed_forward_tensor, key.modules.embedding_tensor, key.modules.output_tensor})
    mix(value);
  std::int64_t flags = static_cast<std::int64_t>(key.modules.output_mode) * 4 +
                       static_cast<std::int64_t>(key.modules.attention_work) * 8 +
                       static_cast<std::int64_t>(key.modules.feed_forward_work) * 16 +
                       static_cast<std::int64_t>(key.modules.embedding_work) * 32 +
                       (key.sequence_parallel ? 2 : 0) + (key.accumulates ? 1 : 0);
  mix(flags);
  mix(key.tensor_stride);
  mix(key.context_stride);
  return hash;
}

double recompute_seconds(const UnitCost& unit, std::uint32_t modules) {
  if (modules == 0) modules = static_cast<std::uint32_t>(specs::RecomputedModule::core_attention);
  double seconds = 0;
  for (std::size_t bit = 0; bit < recomputed_module_count; ++bit)
    if ((modules >> bit & 1u) != 0) seconds += unit.recompute[bit];
  return seconds;
}

double axis_stride(const specs::AxisOrder& order, specs::MeshAxis axis, double tensor, double context,
                   double data, double pipeline) {
  double stride = 1;
  for (const specs::MeshAxis inner : order) {
    if (inner == axis) break;
    if (inner == specs::MeshAxis::tensor) stride *= tensor;
    if (inner == specs::MeshAxis::context) stride *= context;
    if (inner == specs::MeshAxis::data) stride *= data;
    if (inner == specs::MeshAxis::pipeline) stride *= pipeline;
  }
  return stride;
}

LayerCosts layer_costs(const CostInputs& inputs, const LayerKey& key) {
  LayerCosts costs = layer_costs_without_mixture(inputs, key);
  costs.mixture = mixture_cost(inputs, key);
  return costs;
}

LayerCosts layer_costs_without_mixture(const CostInputs& inputs, const LayerKey& key) {
  return LayerPricer(inputs, key).price_without_mixture();
}

UnitCost mixture_cost(const CostInputs& inputs, const LayerKey& key) {
  return LayerPricer(inputs, key).price_mixture();
}

LayerKey mixture_key(const LayerKey& key) {
  LayerKey alike = key;
  const std::int64_t common = std::gcd(key.micro_batch, key.context);
  alike.micro_batch /= common;
  alike.context /= common;
  alike.context_stride = 1;
  return alike;
}

}  // namespace cost_models
