// The words of the experiment language that specs, plans and tables share.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

#include "specs/diagnostics/enum_names.h"

namespace specs {

enum class Precision : std::uint8_t { fp64, fp32, fp16, bf16, fp8, mxfp8, nvfp4 };

template <>
struct EnumNames<Precision> {
  static constexpr std::array<std::pair<Precision, std::string_view>, 7> names{{
      {Precision::fp64, "fp64"},
      {Precision::fp32, "fp32"},
      {Precision::fp16, "fp16"},
      {Precision::bf16, "bf16"},
      {Precision::fp8, "fp8"},
      {Precision::mxfp8, "mxfp8"},
      {Precision::nvfp4, "nvfp4"},
  }};
};

/// Bytes of a parameter or activation kept in this training precision. The 8- and 4-bit precisions compute in
/// fewer bits but keep parameters and activations in bf16.
constexpr std::int64_t storage_bytes(Precision precision) {
  switch (precision) {
    case Precision::fp64:
      return 8;
    case Precision::fp32:
      return 4;
    default:
      return 2;
  }
}

/// True where the optimizer keeps an fp32 copy of each parameter beside the 16-bit one.
constexpr bool keeps_master_weights(Precision precision) { return storage_bytes(precision) == 2; }

enum class Recomputation : std::uint8_t {
  none,
  selective,  ///< the named modules; core attention (scores, softmax, dropout) where none is named
  full,       ///< the whole block from its input
};

template <>
struct EnumNames<Recomputation> {
  static constexpr std::array<std::pair<Recomputation, std::string_view>, 3> names{{
      {Recomputation::none, "none"},
      {Recomputation::selective, "selective"},
      {Recomputation::full, "full"},
  }};
};

/// What selective recomputation runs again, a set as an OR of bits.
enum class RecomputedModule : std::uint32_t {
  core_attention = 1,
  normalization = 2,
  feed_forward = 4,
  expert_activation = 8,
  latent_up_projection = 16,
  element_wise = 32,  ///< everything but matrix products and attention outputs
};

template <>
struct EnumNames<RecomputedModule> {
  static constexpr std::array<std::pair<RecomputedModule, std::string_view>, 6> names{{
      {RecomputedModule::core_attention, "core_attention"},
      {RecomputedModule::normalization, "normalization"},
      {RecomputedModule::feed_forward, "feed_forward"},
      {RecomputedModule::expert_activation, "expert_activation"},
      {RecomputedModule::latent_up_projection, "latent_up_projection"},
      {RecomputedModule::element_wise, "element_wise"},
  }};
};

enum class OutputLayerMode : std::uint8_t {
  vocabulary_parallel,  ///< each rank a slice of the table, all tokens
  token_parallel,  ///< the whole table on each rank of the tensor axis, each rank its share of the tokens
};

template <>
struct EnumNames<OutputLayerMode> {
  static constexpr std::array<std::pair<OutputLayerMode, std::string_view>, 2> names{{
      {OutputLayerMode::vocabulary_parallel, "vocabulary-parallel"},
      {OutputLayerMode::token_parallel, "token-parallel"},
  }};
};

/// How keys and values reach the ranks of a context axis.
enum class ContextMode : std::uint8_t { ring, all_gather, all_to_all };

template <>
struct EnumNames<ContextMode> {
  static constexpr std::array<std::pair<ContextMode, std::string_view>, 3> names{{
      {ContextMode::ring, "ring"},
      {ContextMode::all_gather, "all-gather"},
      {ContextMode::all_to_all, "all-to-all"},
  }};
};

/// `node`: shards stay inside a node (the tray on GB200, not its NVLink domain); whole copies across nodes.
enum class ShardScope : std::uint8_t { world, node };

template <>
struct EnumNames<ShardScope> {
  static constexpr std::array<std::pair<ShardScope, std::string_view>, 2> names{{
      {ShardScope::world, "world"},
      {ShardScope::node, "node"},
  }};
};

enum class OffloadDevice : std::uint8_t { none, cpu, nvme };

template <>
struct EnumNames<OffloadDevice> {
  static constexpr std::array<std::pair<OffloadDevice, std::string_view>, 3> names{{
      {OffloadDevice::none, "none"},
      {OffloadDevice::cpu, "cpu"},
      {OffloadDevice::nvme, "nvme"},
  }};
};

enum class AttentionImplementation : std::uint8_t {
  unfused,  ///< scores and softmax stored
  flash,    ///< one fused kernel, log-sum-exp stored
};

template <>
struct EnumNames<AttentionImplementation> {
  static constexpr std::array<std::pair<AttentionImplementation, std::string_view>, 2> names{{
      {AttentionImplementation::unfused, "unfused"},
      {AttentionImplementation::flash, "flash"},
  }};
};

enum class Objective : std::uint8_t { step_time, cost, energy, goodput };

template <>
struct EnumNames<Objective> {
  static constexpr std::array<std::pair<Objective, std::string_view>, 4> names{{
      {Objective::step_time, "step_time"},
      {Objective::cost, "cost"},
      {Objective::energy, "energy"},
      {Objective::goodput, "goodput"},
  }};
};

}  // namespace specs
