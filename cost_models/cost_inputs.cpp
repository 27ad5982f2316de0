#include "cost_models/cost_inputs.h"

#include <algorithm>

#include "cost_models/bucket_sizes.h"
#include "cost_models/schedule_moments.h"
#include "specs/plan/placement.h"

namespace cost_models {
namespace {

using specs::Precision;

bool computes_in_8_bits(Precision precision) {
  return precision == Precision::fp8 || precision == Precision::mxfp8 || precision == Precision::nvfp4;
}

double peak(const specs::DeviceSpec& device, Precision precision) {
  const auto found = device.peak_flops.find(precision);
  if (found != device.peak_flops.end()) return found->second;
  return device.peak_flops.empty() ? 1e12 : device.peak_flops.rbegin()->second;
}

double peak_16bit(const specs::DeviceSpec& device) {
  const auto bf16 = device.peak_flops.find(Precision::bf16);
  return bf16 != device.peak_flops.end() ? bf16->second : peak(device, Precision::fp16);
}

ModelSizes model_sizes(const specs::ModelSpec& model, const specs::TrainingSpec& training) {
  ModelSizes sizes;
  sizes.hidden = static_cast<double>(model.hidden);
  sizes.heads = static_cast<double>(model.attention.heads);
  sizes.kv_heads = static_cast<double>(model.attention.kv_heads);
  sizes.head_dim = static_cast<double>(model.attention.head_dim);
  sizes.ffn_hidden = static_cast<double>(model.feed_forward.hidden);
  sizes.gate_factor = model.feed_forward.gated ? 2 : 1;
  sizes.vocabulary = static_cast<double>(model.vocabulary);
  sizes.sequence = static_cast<double>(training.sequence_length);
  const double sliding_layers =
      model.attention.sliding_window > 0
          ? 1.0 / static_cast<double>(std::max<std::int64_t>(1, model.attention.sliding_every))
          : 0;
  sizes.causal =
      sliding_layers * causal_share(sizes.sequence, static_cast<double>(model.attention.sliding_window)) +
      (1 - sliding_layers) * 0.5;
  sizes.query_key_dim = sizes.value_dim = sizes.head_dim;
  if (model.attention.latent) {
    const specs::LatentAttention& latent = *model.attention.latent;
    sizes.latent = true;
    sizes.query_rank = static_cast<double>(latent.query_rank);
    sizes.key_value_rank = static_cast<double>(latent.key_value_rank);
    sizes.rotary_head_dim = static_cast<double>(latent.rotary_head_dim);
    sizes.query_key_dim = static_cast<double>(latent.rotary_head_dim + latent.content_head_dim);
    sizes.value_dim = static_cast<double>(latent.value_head_dim);
  }
  if (model.mixture) {
    sizes.experts = static_cast<double>(model.mixture->experts);
    sizes.top_k = static_cast<double>(model.mixture->top_k);
    sizes.expert_hidden = static_cast<double>(model.mixture->expert_hidden);
    sizes.shared_hidden = static_cast<double>(model.mixture->shared_expert_hidden);
    sizes.clamped_experts = model.attention.sliding_window > 0;
  }
  sizes.prediction_layers = static_cast<double>(model.prediction_layers);
  return sizes;
}

/// Looks constants up for one device, stack and precision.
class Resolver {
 public:
  Resolver(const CostInputs& inputs, const ConstantTable& constants)
      : training_(inputs.training),
        network_(inputs.cluster.network),
        node_(inputs.cluster.groups.at(static_cast<std::size_t>(inputs.device_group)).node),
        device_(node_.device),
        profile_(inputs.profile),
        constants_(constants) {}

  void resolve(CostInputs& inputs) const {
    const double bandwidth =
        device_.memory_bytes_per_second * constants_.value("memory.bandwidth_efficiency");
    resolve_gemm(inputs, bandwidth);
    resolve_attention(inputs, bandwidth);
    resolve_launch(inputs);
    resolve_memory_bound(inputs, bandwidth);
    resolve_links(inputs);
    resolve_exposed(inputs);
    resolve_step(inputs);
    resolve_memory(inputs);
    resolve_interval(inputs);
  }

 private:
  // "prefix.key", or "prefix.fallback" where the table has no such key.
  double keyed(const std::string& prefix, const std::string& key, const std::string& fallback) const {
    const std::string name = prefix + "." + key;
    return constants_.contains(name) ? constants_.value(name) : constants_.value(prefix + "." + fallback);
  }
  double factor(const std::string& prefix, const std::string& key) const {
    return constants_.value_or(prefix + "." + key, 1.0);
  }
  // Compiled and eager code call the same products.
  std::string gemm_constants() const {
    return profile_.constants == "fsdp2-compiled" ? "fsdp2" : profile_.constants;
  }
  // The CPU generation and parts without a fit of their own take the nearest generation's values.
  std::string generation() const {
    if (device_.generation == "ada") return "ampere";
    return device_.generation;
  }
  bool on_cpu() const { return device_.generation == "cpu"; }

  void resolve_gemm(CostInputs& inputs, double bandwidth) const {
    GemmRates rates;
    rates.memory_bytes_per_second = bandwidth;
    rates.multiprocessors = static_cast<double>(device_.multiprocessors);
    rates.depth_half = constants_.value("gemm.depth_half");
    rates.bytes_per_element = static_cast<double>(specs::storage_bytes(training_.precision));
    if (!on_cpu()) rates.misaligned_factor = constants_.value("gemm.misaligned_factor");
    const double power =
        factor("gemm.power_factor", device_.name) * factor("gemm.stack_factor", gemm_constants());
    const double power_16bit = power * factor("gemm.power_factor_16bit", device_.name);
    inputs.gemm = inputs.gemm_16bit = rates;
    if (on_cpu()) {
      inputs.gemm.flops_per_second = inputs.gemm_16bit.flops_per_second = peak(device_, training_.precision);
      for (const specs::GemmRate& rate : device_.gemm_rates)
        if (rate.precision == training_.precision) inputs.gemm.measured.push_back(rate);
      std::sort(inputs.gemm.measured.begin(), inputs.gemm.measured.end(),
                [](const auto& left, const auto& right) { return left.size < right.size; });
      inputs.gemm_16bit.measured = inputs.gemm.measured;
      inputs.grouped_gemm_efficiency = 1;
      return;
    }
    const double efficiency = keyed("gemm.efficiency_16bit", generation(), "hopper") * power_16bit;
    inputs.gemm_16bit.flops_per_second = peak_16bit(device_) * efficiency;
    inputs.gemm.flops_per_second = peak(device_, training_.precision) * efficiency;
    if (computes_in_8_bits(training_.precision)) {
      double low = keyed("gemm.efficiency_8bit", generation(), "blackwell") * power;
      if (training_.precision == Precision::mxfp8) low *= constants_.value("gemm.precision_factor.mxfp8");
      if (training_.precision == Precision::nvfp4) low *= constants_.value("gemm.precision_factor.nvfp4");
      if (profile_.options.rowwise_scales) low *= constants_.value("gemm.precision_factor.rowwise");
      inputs.gemm.flops_per_second = peak(device_, training_.precision) * low;
    }
    inputs.grouped_gemm_efficiency = constants_.value("gemm.grouped_efficiency");
  }

  void resolve_attention(CostInputs& inputs, double bandwidth) const {
    AttentionRates& rates = inputs.attention;
    std::string kernel = generation();
    if (kernel == "hopper" && profile_.triton_attention) kernel = "hopper-triton";
    if (kernel == "hopper" && profile_.flash_attention_2) kernel = "hopper-flash2";
    rates.memory_bytes_per_second = bandwidth;
    rates.unfused_traffic = constants_.value("attention.unfused_traffic") * inputs.element_bytes / 2;
    rates.flash_backward_factor = constants_.value("attention.flash_backward_factor");
    rates.misaligned_factor = constants_.value("attention.misaligned_factor");
    rates.context_loss = constants_.value("attention.context_parallel_loss");
    if (on_cpu()) {
      rates.peak_flops_per_second = inputs.gemm.flops_per_second;
      rates.flash_efficiency = constants_.value("cpu.attention_efficiency");
      rates.unfused_flops_per_second = inputs.gemm.flops_per_second * rates.flash_efficiency;
      rates.misaligned_factor = 1;
      return;
    }
    rates.peak_flops_per_second = peak_16bit(device_);
    rates.flash_efficiency = keyed("attention.flash_efficiency", kernel, "ampere");
    rates.unfused_flops_per_second =
        inputs.gemm_16bit.flops_per_second * constants_.value("attention.unfused_efficiency");
  }

  void resolve_launch(CostInputs& inputs) const {
    LaunchRates& launch = inputs.launch;
    if (on_cpu()) {
      launch.layer_seconds = constants_.value("cpu.layer_operators") * device_.operator_seconds;
      launch.overlap_power = 1;  // the host is the device
      return;
    }
    const bool grace = node_.link_domain_devices > 8 && node_.devices <= 4;
    const double host = grace ? constants_.value("launch.grace_factor") : 1.0;
    launch.layer_seconds =
        constants_.value("launch.layer_seconds") * factor("launch.stack_factor", profile_.constants) * host;
    if (profile_.checkpointing_synchronises)
      launch.synchronised_seconds = constants_.value("launch.synchronised_seconds");
    launch.tensor_seconds = constants_.value("launch.tensor_parallel_seconds");
    launch.tensor_exponent = constants_.value("launch.tensor_parallel_exponent");
    launch.overlap_power = constants_.value("launch.overlap_power");
    // A graph's kernels are launched at once; what it leaves outside still costs the host.
    const double graphs = profile_.options.full_graphs      ? constants_.value("launch.graph_factor.full")
                          : profile_.options.partial_graphs ? constants_.value("launch.graph_factor.partial")
                                                            : 1.0;
    if (profile_.options.full_graphs) launch.layer_seconds *= graphs;
    const double release = factor("launch.mixture_release_factor", release_key()) * graphs;
    launch.mixture_layer_seconds = constants_.value("launch.mixture_layer_seconds") * host * release;
    if (profile_.mixture_release == MixtureRelease::early && inputs.sizes.latent)
      launch.mixture_layer_seconds +=
          constants_.value("launch.mixture_latent_early_seconds") * host * release;
    launch.mixture_expert_seconds = constants_.value("launch.mixture_expert_seconds") * host * release;
  }

  std::string release_key() const {
    switch (profile_.mixture_release) {
      case MixtureRelease::early:
        return "early";
      case MixtureRelease::r25_09:
        return "25-09";
      case MixtureRelease::r26_02:
        return "26-02";
    }
    return "26-02";
  }

  void resolve_memory_bound(CostInputs& inputs, double bandwidth) const {
    MemoryBoundRates& rates = inputs.memory_bound;
    rates.bytes_per_second = bandwidth * (on_cpu() ? constants_.value("cpu.element_wise_efficiency") : 1.0);
    rates.fusion = constants_.value("memory.fusion") * factor("memory.fusion_factor", profile_.constants);
    rates.cast_bytes =
        computes_in_8_bits(training_.precision) ? 3 * constants_.value("memory.cast_traffic") : 0;
    rates.backward_factor = constants_.value("memory.backward_factor");
    rates.permutation_bytes = constants_.value("memory.permutation_bytes." +
                                               (profile_.options.full_graphs ? "fused" : release_key()));
    rates.expert_activation_factor =
        inputs.sizes.clamped_experts ? constants_.value("memory.sliding_activation_factor") : 1;
    rates.loss_bytes_per_logit = loss_bytes_per_logit(profile_) * constants_.value("loss.traffic_factor");
  }

  double first_level_oversubscription() const {
    return network_.levels.empty() ? 1 : network_.levels.front().oversubscription;
  }
  /// Each level but the first joins the groups of the one below.
  std::vector<NetworkTier> tiers() const {
    std::vector<NetworkTier> tiers;
    double slowdown = 1;
    for (std::size_t level = 1; level < network_.levels.size(); ++level) {
      const std::int64_t below = network_.levels[level - 1].nodes;
      if (below == 0) break;
      slowdown *= network_.levels[level].oversubscription;
      tiers.push_back(
          {static_cast<double>(below * node_.devices), slowdown, network_.levels[level].latency_seconds});
    }
    return tiers;
  }

  void resolve_links(CostInputs& inputs) const {
    LinkRates base;
    base.domain_devices = static_cast<double>(std::max(node_.devices, node_.link_domain_devices));
    const double wire =
        network_.node_bytes_per_second / static_cast<double>(node_.devices) / first_level_oversubscription();
    base.tiers = tiers();
    base.network_step_seconds = constants_.value("communication.step_latency_seconds");
    if (!network_.levels.empty()) base.network_step_seconds += network_.levels.front().latency_seconds;
    if (on_cpu()) {
      base.link_bytes_per_second = node_.link_bytes_per_second;
      base.link_step_seconds = node_.link_latency_seconds;
      base.network_bytes_per_second = std::max(wire, 1.0);
      base.network_step_seconds = network_.latency_seconds;
      base.measured = node_.collective_rates;
      inputs.links = {base, base, base, base, base};
      for (specs::CollectiveRate& rate : inputs.links.pipeline.measured)
        if (rate.collective == specs::MeasuredCollective::send_receive)
          rate.latency_seconds += constants_.value("cpu.wake_seconds");
      return;
    }
    const std::string switched = node_.link == "nvlink" ? device_.generation : "default";
    base.link_bytes_per_second =
        node_.link_bytes_per_second * keyed("communication.link_efficiency", switched, "default");
    double network = constants_.value("communication.network_efficiency.default");
    const double context_network = network;
    if (profile_.constants == "deepspeed")
      network = constants_.value("communication.network_efficiency.deepspeed");
    if (network_.kind == specs::NetworkKind::roce)
      network = constants_.value("communication.network_efficiency.roce");
    const auto with_network = [&](double efficiency) {
      LinkRates rates = base;
      rates.network_bytes_per_second = std::max(wire * efficiency, 1.0);
      return rates;
    };
    inputs.links.data = with_network(network);
    inputs.links.data.link_step_seconds = 1e-6;
    inputs.links.context = with_network(context_network);
    inputs.links.context.network_step_seconds = 0;
    inputs.links.pipeline = with_network(context_network);
    inputs.links.pipeline.call_seconds =
        keyed("communication.pipeline_call_seconds", profile_.constants, "default");
    inputs.links.pipeline.network_step_seconds = 0;
    const double latency = constants_.value("communication.tensor_latency_seconds");
    inputs.links.tensor = with_network(constants_.value("communication.tensor_network_efficiency"));
    inputs.links.tensor.call_seconds = 1.1 * latency;
    inputs.links.tensor.link_step_seconds = 0.1 * latency;
    inputs.links.tensor.network_step_seconds = 0;
    const bool early = profile_.mixture_release == MixtureRelease::early;
    inputs.links.expert =
        with_network(constants_.value(early ? "communication.expert_network_efficiency.early"
                                            : "communication.expert_network_efficiency.default"));
    // All-to-all kernels drive one port of each device, however many it has.
    const double port = constants_.value("communication.expert_port_bytes_per_second");
    inputs.links.expert.network_bytes_per_second *= std::min(1.0, port / std::max(wire, 1.0));
    inputs.links.expert.call_seconds = 2 * latency;
    inputs.links.expert.network_step_seconds = 0;
  }

  void resolve_exposed(CostInputs& inputs) const {
    ExposedShares& exposed = inputs.exposed;
    if (on_cpu()) {
      // The cores that compute are those that move the bytes: nothing is hidden.
      exposed.gather_interference = 1;
      inputs.profile.prefetches_gathers = false;
      return;
    }
    exposed.tensor = constants_.value("communication.tensor_exposed." + profile_.tensor_constants);
    if (profile_.options.async_tensor_parallel)
      exposed.tensor *= constants_.value("communication.tensor_exposed_async");
    exposed.tensor_backward = profile_.hides_backward_tensor_communication
                                  ? exposed.tensor * constants_.value("communication.tensor_backward_exposed")
                                  : exposed.tensor;
    exposed.context = constants_.value("communication.context_exposed");
    exposed.expert = constants_.value("communication.expert_exposed");
    if (profile_.options.expert_overlap) exposed.expert *= constants_.value("communication.expert_overlap");
    exposed.pipeline =
        constants_.value("communication.pipeline_exposed") * (profile_.hides_pipeline_transfers ? 0.3 : 1);
    exposed.data = profile_.options.local_reduction
                       ? 1.0
                       : constants_.value("communication.data_exposed." + profile_.data_constants);
    exposed.gather_interference = constants_.value("communication.gather_interference");
  }

  void resolve_step(CostInputs& inputs) const {
    inputs.recompute_fraction = on_cpu() ? 1 : constants_.value("recompute.forward_fraction.default");
    inputs.recompute_fraction_sharded = on_cpu() ? 1 : constants_.value("recompute.forward_fraction.sharded");
    inputs.recompute_operators = constants_.value("recompute.selective_operators");
    inputs.optimizer_traffic = constants_.value("optimizer.traffic_factor");
    inputs.power_fraction = constants_.value("energy.power_fraction");
    inputs.fixed_seconds = on_cpu() ? 0 : constants_.value("step.fixed_seconds");
    inputs.tensor_micro_batch_seconds = on_cpu() ? 0 : constants_.value("step.tensor_micro_batch_seconds");
    inputs.activation_offload_exposed = constants_.value("offload.activation_exposed");
    inputs.cpu_adam_parameters_per_second = constants_.value("offload.cpu_adam_parameters_per_second");
    inputs.devices_are_cores = on_cpu();
    inputs.host_link_bytes_per_second =
        device_.host_link_bytes_per_second > 0 ? device_.host_link_bytes_per_second : 25e9;
    inputs.nvme_read_bytes_per_second = node_.nvme_read_bytes_per_second;
    inputs.nvme_write_bytes_per_second = node_.nvme_write_bytes_per_second;
    inputs.devices_per_node = static_cast<double>(node_.devices);
    const bool half = specs::keeps_master_weights(training_.precision);
    inputs.gradient_bytes =
        half ? static_cast<double>(specs::storage_bytes(training_.gradient_precision)) : inputs.element_bytes;
    inputs.reduction_bytes = reduction_bytes(training_);
    if (profile_.accumulates_in_gemm_buffers) inputs.accumulated_bytes = 2 * inputs.gradient_bytes;
  }

  void resolve_interval(CostInputs& inputs) const {
    const char* kind = inputs.sizes.experts > 0                  ? "mixture"
                       : computes_in_8_bits(training_.precision) ? "low_precision"
                                                                 : "dense";
    // A stack that another stands in for has an error of its own beside the model's.
    const double stand_in = profile_.exact ? 1.0 : 1.5;
    inputs.interval_half_width = constants_.value(std::string("interval.half_width.") + kind) * stand_in;
  }

  void resolve_memory(CostInputs& inputs) const {
    MemoryConstants& memory = inputs.memory;
    if (on_cpu()) return;
    const auto named = [&](const char* name) {
      return constants_.value(std::string("memory_capacity.") + name);
    };
    memory.workspace_bytes = named("cublas_workspace_bytes");
    memory.mixture_backward_copies = named("mixture_backward_copies");
    memory.context_bytes = named("device_context_bytes");
    memory.communicator_bytes = named("communicator_bytes");
    memory.bucket_elements = static_cast<double>(training_.gradient_bucket_elements > 0
                                                     ? training_.gradient_bucket_elements
                                                     : catalog_profile(profile_).gradient_bucket.elements);
    memory.loss_bytes_per_logit = named("loss_bytes_per_logit.megatron-core");
    memory.eager_loss_bytes_per_logit = named("loss_bytes_per_logit.eager");
    memory.parallel_loss_bytes_per_logit = named("loss_bytes_per_logit.eager_parallel");
    memory.compiled_loss_bytes_per_logit = named("loss_bytes_per_logit.compiled");
    memory.activation_slack = constants_.value_or("memory_capacity.activation_slack." + profile_.name, 1);
    memory.slack = keyed("memory_capacity.slack", profile_.name, "default");
  }

  const specs::TrainingSpec& training_;
  const specs::NetworkSpec& network_;
  const specs::NodeSpec& node_;
  const specs::DeviceSpec& device_;
  const StackProfile& profile_;
  const ConstantTable& constants_;
};

}  // namespace

CostInputs make_cost_inputs(const specs::Experiment& experiment, const StackProfile& profile,
                            const ConstantTable& constants, std::int64_t device_group) {
  CostInputs inputs;
  inputs.moments = std::make_shared<ScheduleMomentsMemo>();
  inputs.model = experiment.model;
  inputs.training = experiment.training;
  inputs.cluster = experiment.cluster;
  inputs.profile = profile;
  inputs.device_group = device_group;
  inputs.sizes = model_sizes(experiment.model, experiment.training);
  inputs.element_bytes = static_cast<double>(specs::storage_bytes(experiment.training.precision));
  resolve_constants(constants, inputs);
  return inputs;
}

void resolve_constants(const ConstantTable& constants, CostInputs& inputs) {
  const specs::DeviceSpec& device =
      inputs.cluster.groups.at(static_cast<std::size_t>(inputs.device_group)).node.device;
  if (device.efficiency.empty()) return Resolver(inputs, constants).resolve(inputs);
  ConstantTable own = constants;
  for (const auto& [name, value] : device.efficiency)
    if (own.contains(name)) own.set(own.index(name), value);
  Resolver(inputs, own).resolve(inputs);
}

}  // namespace cost_models
