// The recipe: what one optimizer update is, and how many of them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "specs/diagnostics/enum_names.h"
#include "specs/language/vocabulary.h"

namespace specs {

enum class OptimizerKind : std::uint8_t { adamw, sgd };

template <>
struct EnumNames<OptimizerKind> {
  static constexpr std::array<std::pair<OptimizerKind, std::string_view>, 2> names{{
      {OptimizerKind::adamw, "adamw"},
      {OptimizerKind::sgd, "sgd"},
  }};
};

struct OptimizerSpec {
  OptimizerKind type = OptimizerKind::adamw;
  double learning_rate = 3e-4;  ///< `lr` in the experiment
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.1;
  double momentum = 0.9;  ///< sgd only
  bool operator==(const OptimizerSpec&) const = default;
};

enum class LearningRateDecay : std::uint8_t { constant, linear, cosine };

template <>
struct EnumNames<LearningRateDecay> {
  static constexpr std::array<std::pair<LearningRateDecay, std::string_view>, 3> names{{
      {LearningRateDecay::constant, "constant"},
      {LearningRateDecay::linear, "linear"},
      {LearningRateDecay::cosine, "cosine"},
  }};
};

/// Counted in optimizer updates, never in micro-batches.
struct LearningRateSchedule {
  std::int64_t warmup_steps = 0;
  LearningRateDecay decay = LearningRateDecay::cosine;
  std::int64_t decay_steps = 0;  ///< 0: all steps
  double minimum_ratio = 0.1;    ///< of the peak rate
  bool operator==(const LearningRateSchedule&) const = default;
};

/// fp16 only. Values as in DeepSpeed: initial 2^16, window 1000, hysteresis 2, floor 1.
struct LossScalingSpec {
  double initial_scale = 65536;
  std::int64_t window = 1000;
  std::int64_t hysteresis = 2;
  double minimum_scale = 1;
  double factor = 2;
  bool operator==(const LossScalingSpec&) const = default;
};

/// Several updates between synchronisations, then an outer update on the averaged change (DiLoCo). Changes
/// the mathematics; used only where `[search] local_steps` allows more than 1.
struct LocalStepsSpec {
  double outer_learning_rate = 1;
  double outer_momentum = 0;
  bool nesterov = false;
  bool operator==(const LocalStepsSpec&) const = default;
};

struct DataSpec {
  std::string tokenizer = "byte";  ///< "byte": 256 symbols; "none": the files hold token ids
  bool shuffle = true;
  double held_back_fraction = 0.05;     ///< of the text, never trained on
  std::int64_t evaluation_batches = 8;  ///< of global_batch sequences
  std::int64_t evaluate_every = 0;      ///< steps; 0: only at the end
  bool operator==(const DataSpec&) const = default;
};

struct TrainingSpec {
  std::int64_t global_batch = 0;  ///< sequences per optimizer update
  std::int64_t sequence_length = 0;
  Precision precision = Precision::bf16;
  Precision gradient_precision = Precision::fp32;   ///< of the accumulated gradient
  Precision reduction_precision = Precision::fp32;  ///< in which gradients cross the network
  std::optional<Precision> parameter_precision;  ///< as kept between steps; absent: as `precision` stores it
  std::optional<Precision> gather_precision;     ///< ZeRO gathers; absent: as `precision` stores it
  Precision optimizer_state_precision = Precision::fp32;
  OptimizerSpec optimizer;
  LearningRateSchedule schedule;
  LossScalingSpec loss_scaling;
  double gradient_clip = 1.0;    ///< global norm; 0: off
  double dropout = 0;            ///< of the embedding and of what is added to the residual stream
  double attention_dropout = 0;  ///< of the attention weights
  AttentionImplementation attention = AttentionImplementation::flash;
  std::int64_t steps = 0;
  double tokens = 0;  ///< the whole training run, for days and cost; 0: not asked
  std::uint64_t seed = 1234;
  std::int64_t checkpoint_every = 0;  ///< steps; 0: only at the end
  std::string stack = "dsrun";        ///< software stack profile
  std::string stack_release;          ///< empty: the profile's latest
  std::vector<std::string>
      stack_features;    ///< switches of the stack beyond its profile ("async_tp", "liger" …)
  bool compile = false;  ///< kernels fused by a compiler (torch.compile)
  std::int64_t swap_buffer_elements = 0;      ///< of one pinned buffer of an offload to NVMe; 0: 10⁸
  std::int64_t gradient_bucket_elements = 0;  ///< reduced in one collective; 0: the stack's
  std::int64_t gather_bucket_elements = 0;    ///< updated parameters gathered in one; 0: the stack's
  LocalStepsSpec local_steps;
  DataSpec data;
  bool operator==(const TrainingSpec&) const = default;
};

}  // namespace specs
