// One training run of a tiny model under one placement, as a value that travels to the ranks and back.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/train/fault_switches.h"
#include "specs/language/model.h"
#include "specs/language/training.h"
#include "specs/plan/placement.h"
#include "specs/schedule/schedule.h"

namespace runtime::numerics {

/// How a case cuts the model into stages.
enum class Cut : std::uint8_t {
  even,        ///< whole layers, as evenly as they go
  sub_layer,   ///< between attention and feed-forward network
  front_heavy  ///< the first stage holds all layers but one per later stage
};

enum class TinyModel : std::uint8_t {
  gpt,           ///< layer norm, learned positions, GELU, biases
  llama,         ///< RMS norm, rotary, gated SiLU, 24 heads on 2 key-value heads
  llama_thirds,  ///< the same with 3 key-value heads, for a tensor degree of 3
};

/// Which layers of a stage are recomputed, and how.
enum class RecomputedLayers : std::uint8_t {
  all,         ///< a checkpoint before each
  first_half,  ///< of the stage's layers, rounded up
  in_pairs,    ///< all, a checkpoint before every other one
};

struct TrainingCase {
  TinyModel model = TinyModel::gpt;
  bool tied = true;
  specs::Precision precision = specs::Precision::fp32;
  specs::Precision gradient_precision = specs::Precision::fp32;  ///< beside a 16-bit precision
  specs::OptimizerKind optimizer = specs::OptimizerKind::sgd;
  std::int64_t tensor = 1;
  std::int64_t pipeline = 1;
  std::int64_t data = 1;
  std::int64_t virtual_stages = 1;
  specs::AxisOrder order = specs::default_axis_order;
  specs::ZeroTreatment zero;
  specs::StageOffload offload;
  std::int64_t micro_batches = 1;  ///< of each replica
  specs::ScheduleKind schedule = specs::ScheduleKind::one_forward_one_backward;
  Cut cut = Cut::even;
  std::int64_t fixed_layers = 0;
  std::int64_t sequence_length = 8;
  bool sequence_parallel = false;
  specs::OutputLayerMode output_mode = specs::OutputLayerMode::vocabulary_parallel;
  specs::Recomputation recomputation = specs::Recomputation::none;
  RecomputedLayers recomputed_layers = RecomputedLayers::all;
  /// Several buckets even of these models.
  specs::BucketSizes buckets{
      .gradient_bucket_bytes = 65536, .gather_bucket_bytes = 65536, .minimum_message_bytes = 2048};
  bool overlap_reduction = true;
  bool debug_synchronise = false;
  double dropout = 0;
  double attention_dropout = 0;
  specs::AttentionImplementation attention = specs::AttentionImplementation::flash;
  double gradient_clip = 0.5;  ///< below the norms of these runs: clipping is at work
  std::int64_t steps = 3;      ///< the last one's loss is that of weights with two updates behind them
  std::int64_t warmup_steps = 2;
  /// Each target follows from its token; else they are drawn at random, which nothing can learn: gradients
  /// stay noise, and after some tens of steps rounding alone leads anywhere.
  bool learnable = false;
  double initial_loss_scale = 65536;
  std::int64_t loss_scale_window = 1000;
  std::uint64_t spoiled_steps = 0;  ///< bit n: the gradients of step n become infinite
  std::int64_t spoiled_rank = 0;    ///< on this rank
  FaultSwitches faults;

  std::int64_t ranks() const { return tensor * pipeline * data; }
  std::int64_t stages() const { return pipeline * virtual_stages; }
  std::int64_t micro_batch() const { return global_batch / data / micro_batches; }
  /// As few as the cut needs, at least 3; or `fixed_layers`.
  std::int64_t layers() const;
  std::string name() const;

  static constexpr std::int64_t global_batch = 24;
  static constexpr std::int64_t vocabulary = 53;
};

specs::ModelSpec model_of(const TrainingCase& training);
specs::TrainingSpec training_of(const TrainingCase& training);
specs::Placement placement_of(const TrainingCase& training);
specs::Schedule schedule_of(const TrainingCase& training);

/// The bytes of the case, for a worker of the same program.
std::string to_bytes(const TrainingCase& training);
TrainingCase case_from_bytes(const std::string& bytes);

}  // namespace runtime::numerics
