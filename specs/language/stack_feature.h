// What a run or a build of a software stack does beyond the stack's profile: `[training] stack_features`.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

#include "specs/diagnostics/enum_names.h"

namespace specs {

enum class StackFeature : std::uint8_t {
  module_tensor_degrees,  ///< attention, FFN, embedding and output layer may have a tensor degree of their
                          ///< own
  token_parallel_output,  ///< the output layer may be token-parallel
  cuts_inside_layers,     ///< stages may be uneven, and a cut may fall between an attention and its FFN
  fine_grained_activation_offload,  ///< activations may be offloaded beside a pipeline
  async_tensor_parallel,       ///< tensor-parallel communication is split and overlapped with its product
  rowwise_scales,              ///< fp8 products scaled row by row
  fused_linear_cross_entropy,  ///< the output layer in slices with their loss
  fused_cross_entropy,         ///< one loss kernel that writes the gradient in place of the logits
  compiled_loss,               ///< the loss compiled apart (torchtitan since early 2025)
  layers_only,                 ///< no embedding, output layer or optimizer step
  balanced_stages,             ///< stages cut by hand so that all ranks take equally long
  partial_graphs,              ///< CUDA graphs of attention, router and preprocessing
  full_graphs,                 ///< CUDA graphs of the whole iteration, with fused grouped products
  expert_overlap,              ///< the experts' all-to-all beside the compute of another micro-batch
  reduction_after_backward,    ///< gradients are reduced in one go after the last backward pass
};

template <>
struct EnumNames<StackFeature> {
  static constexpr std::array<std::pair<StackFeature, std::string_view>, 15> names{{
      {StackFeature::module_tensor_degrees, "module_tensor_degrees"},
      {StackFeature::token_parallel_output, "token_parallel_output"},
      {StackFeature::cuts_inside_layers, "cuts_inside_layers"},
      {StackFeature::fine_grained_activation_offload, "fine_grained_offload"},
      {StackFeature::async_tensor_parallel, "async_tp"},
      {StackFeature::rowwise_scales, "float8_rowwise"},
      {StackFeature::fused_linear_cross_entropy, "liger"},
      {StackFeature::fused_cross_entropy, "fused_cross_entropy"},
      {StackFeature::compiled_loss, "compiled_loss"},
      {StackFeature::layers_only, "layers_only"},
      {StackFeature::balanced_stages, "balanced_stages"},
      {StackFeature::partial_graphs, "partial_graphs"},
      {StackFeature::full_graphs, "full_graphs"},
      {StackFeature::expert_overlap, "expert_overlap"},
      {StackFeature::reduction_after_backward, "no_torch_ddp"},
  }};
};

}  // namespace specs
