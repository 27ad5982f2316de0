#include "cost_models/stack_profile.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

namespace cost_models {
namespace {

MixtureRelease mixture_release(std::string_view release) {
  if (release.empty() || release >= std::string_view("26.00")) return MixtureRelease::r26_02;
  if (release >= std::string_view("25.09")) return MixtureRelease::r25_09;
  return MixtureRelease::early;
}

StackProfile named(std::string name, std::string constants, MemoryRules memory) {
  StackProfile profile;
  profile.name = std::move(name);
  profile.constants = std::move(constants);
  profile.tensor_constants = "default";
  profile.data_constants = "default";
  profile.memory = memory;
  return profile;
}

/// By what its name tells of an unknown stack; Megatron-Core where it tells nothing.
std::string_view nearest_stack(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 16> hints{{
      {"neox", "gpt-neox"},
      {"megatron-deepspeed", "megatron-deepspeed"},
      {"deepspeed", "deepspeed"},
      {"composer", "composer-fsdp"},
      {"mosaic", "composer-fsdp"},
      {"foundry", "composer-fsdp"},
      {"titan", "torchtitan"},
      {"fms", "fms-fsdp"},
      {"fsdp", "fsdp2"},
      {"tune", "fsdp2"},
      {"lit-gpt", "fsdp2"},
      {"litgpt", "fsdp2"},
      {"axolotl", "deepspeed"},
      {"zero", "deepspeed"},
      {"nemo", "nemo"},
      {"bridge", "nemo"},
  }};
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const auto& [hint, stack] : hints)
    if (lower.find(hint) != std::string::npos) return stack;
  return "megatron-core";
}

StackProfile megatron(std::string name, std::string constants, MemoryRules memory) {
  StackProfile profile = named(std::move(name), std::move(constants), memory);
  profile.accumulates_in_gemm_buffers = true;
  profile.cross_entropy = CrossEntropy::parallel;
  return profile;
}

}  // namespace

StackOptions stack_options(const specs::TrainingSpec& training) {
  const auto has = [&training](std::string_view feature) {
    return std::find(training.stack_features.begin(), training.stack_features.end(), feature) !=
           training.stack_features.end();
  };
  StackOptions options;
  options.compiled = training.compile;
  options.async_tensor_parallel = has("async_tp");
  options.rowwise_scales = has("float8_rowwise");
  options.layers_only = has("layers_only");
  options.fused_linear_cross_entropy = has("liger");
  options.fused_cross_entropy = has("fused_cross_entropy");
  options.balanced_stages = has("balanced_stages");
  options.partial_graphs = has("partial_graphs");
  options.full_graphs = has("full_graphs");
  options.expert_overlap = has("expert_overlap");
  options.local_reduction = has("no_torch_ddp");
  options.compiled_loss = has("compiled_loss");
  return options;
}

double loss_bytes_per_logit(const StackProfile& profile) {
  if (profile.options.fused_linear_cross_entropy || profile.options.fused_cross_entropy) return 8;
  switch (profile.cross_entropy) {
    case CrossEntropy::parallel:
      // To fp32 (6), maximum (4), minus it (8), exponential (8), sum (4), division (8); times the gradient
      // (8), to 16 bits (6).
      return 52;
    case CrossEntropy::jit:
      // To fp32 with the maximum (6), exponential with the sum (8), division (8); the gradient in 16 bits
      // (6).
      return 28;
    case CrossEntropy::eager:
      // To fp32 (6), log-softmax (8); its gradient (8), to 16 bits (6).
      return 28;
    case CrossEntropy::compiled:
      // Maximum and sum (4); the gradient (4), written once more where the product needs it transposed (4).
      return 12;
    case CrossEntropy::fused:
      // Read for maximum and sum (4), gradient (4).
      return 8;
  }
  return 28;
}

StackProfile stack_profile(const specs::TrainingSpec& training) {
  return stack_profile(training.stack, training.stack_release, stack_options(training));
}

StackProfile stack_profile(std::string_view stack, std::string_view release, const StackOptions& options) {
  StackProfile profile;
  const std::string name(stack);
  if (stack == "megatron-2021" || stack == "megatron-2022") {
    profile = megatron(name, name, MemoryRules::megatron_core);
    profile.mixture_release = MixtureRelease::early;
    profile.hides_backward_tensor_communication = stack == "megatron-2022";
  } else if (stack == "megatron-deepspeed") {
    const bool simulator_study = release == "vtrain";
    profile = megatron(name, simulator_study ? "vtrain" : name, MemoryRules::megatron_deepspeed);
    profile.data_constants = simulator_study ? "default" : name;
    profile.checkpointing_synchronises = !simulator_study;
    profile.mixture_release = MixtureRelease::early;
  } else if (stack == "megatron-core") {
    profile = megatron(name, name, MemoryRules::megatron_core);
    profile.tensor_constants = name;
    profile.cross_entropy = CrossEntropy::jit;
    profile.transformer_engine = true;
    profile.hides_backward_tensor_communication = true;
    profile.mixture_release = release.empty() ? MixtureRelease::r25_09 : mixture_release(release);
  } else if (stack == "nemo") {
    profile = megatron(name, name, MemoryRules::megatron_core);
    profile.tensor_constants = profile.data_constants = "nemo";
    profile.cross_entropy = CrossEntropy::jit;
    profile.transformer_engine = true;
    profile.hides_backward_tensor_communication = true;
    profile.hides_pipeline_transfers = true;
    profile.mixture_release = mixture_release(release);
  } else if (stack == "composer-fsdp") {
    profile = named(name, name, MemoryRules::fsdp2);
    profile.triton_attention = true;
    profile.cross_entropy = CrossEntropy::fused;
  } else if (stack == "fms-fsdp") {
    profile = named(name, name, MemoryRules::fsdp2);
    profile.flash_attention_2 = true;
  } else if (stack == "torchtitan" || stack == "fsdp2") {
    profile = named(name, options.compiled ? "fsdp2-compiled" : "fsdp2", MemoryRules::fsdp2);
    if (options.compiled_loss) profile.cross_entropy = CrossEntropy::compiled;
    profile.flash_attention_2 = true;
  } else if (stack == "deepspeed") {
    profile = named(name, name, MemoryRules::deepspeed);
    profile.prefetches_gathers = false;
  } else if (stack == "gpt-neox" || stack == "other") {
    // GPT-NeoX is built on Megatron and DeepSpeed.
    profile = megatron(name, "megatron-deepspeed", MemoryRules::megatron_deepspeed);
    profile.data_constants = "megatron-deepspeed";
    profile.mixture_release = MixtureRelease::early;
  } else if (stack == "dsrun") {
    profile = named(name, "fsdp2", MemoryRules::dsrun);
    profile.flash_attention_2 = true;
  } else {
    profile = stack_profile(nearest_stack(name), release, options);
    profile.stand_in = profile.name;
    profile.name = name;
    profile.exact = false;
  }
  profile.options = options;
  return profile;
}

}  // namespace cost_models
