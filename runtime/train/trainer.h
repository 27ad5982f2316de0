// One rank's training of one model under one placement: a step is one optimizer update.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/data_parallel/gradient_reducer.h"
#include "runtime/mesh/mesh.h"
#include "runtime/model/parameter_registry.h"
#include "runtime/model/stage_model.h"
#include "runtime/optimizer/loss_scaler.h"
#include "runtime/optimizer/optimizer.h"
#include "runtime/pipeline/executor.h"
#include "runtime/train/fault_switches.h"
#include "specs/language/model.h"
#include "specs/language/training.h"
#include "specs/plan/placement.h"
#include "specs/schedule/schedule.h"

namespace runtime {

/// What a trainer is made from; all of it stands in a plan.
struct TrainerSpec {
  specs::ModelSpec model;
  specs::TrainingSpec training;
  specs::Placement placement;
  specs::Schedule schedule;  ///< lowered
};

class Trainer;

struct TrainerOptions {
  bool overlap_reduction = true;  ///< with the last backward
  FaultSwitches faults;
  /// Called on every rank once the gradients of a step are whole, before anything is decided: for tests that
  /// spoil some.
  std::function<void(Trainer&)> on_gradients;
  bool debug_synchronise = false;  ///< wait for all communication after each backward pass
};

/// Why the runtime cannot build this model, or cut it so, one sentence each; empty where it can. What the
/// placement asks of the runtime besides is checked against its capabilities.
std::vector<std::string> training_refusals(const TrainerSpec& spec);

struct StepResult {
  double loss = 0;           ///< nats per target token, mean over the global batch
  double gradient_norm = 0;  ///< before clipping
  double learning_rate = 0;
  double loss_scale = 1;  ///< that the step used
  bool finite = true;     ///< loss and gradients, on all ranks
  bool updated = true;    ///< false: they were not finite, and nothing was changed
};

class Trainer {
 public:
  /// Requires no refusals. The mesh must outlive the trainer. Collective over the mesh.
  Trainer(TrainerSpec spec, const Mesh& mesh, TrainerOptions options = {});
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  /// `micro_batches` of this rank's replica, the same on all its ranks. The result is the same on every rank.
  StepResult step(const std::vector<MicroBatch>& micro_batches);
  /// Forward and backward alone: gradients, times the loss scale, are whole afterwards where this rank
  /// answers for them.
  StepResult compute_gradients(const std::vector<MicroBatch>& micro_batches);
  /// Mean loss per target token over the micro-batches of all replicas, without dropout.
  double evaluate(const std::vector<MicroBatch>& micro_batches);

  /// Logits [sequences · length, vocabulary] without dropout; requires that this rank holds the whole model.
  at::Tensor logits(const MicroBatch& batch) const;

  ParameterRegistry& parameters() { return registry_; }
  const ParameterRegistry& parameters() const { return registry_; }
  Optimizer& optimizer() { return *optimizer_; }
  const Optimizer& optimizer() const { return *optimizer_; }
  LossScaler& loss_scaler() { return *loss_scaler_; }
  GradientReducer& reducer() { return *reducer_; }
  const UnitGatherer* gatherer() const { return gatherer_.get(); }
  PipelineExecutor& executor() { return *executor_; }
  const Sharding& sharding() const { return sharding_; }
  /// Those of this rank.
  const std::vector<std::unique_ptr<StageModel>>& stages() const { return stages_; }
  const TrainerSpec& spec() const { return spec_; }
  const Mesh& mesh() const { return mesh_; }

 private:
  void build();
  PipelineInput pipeline_input(const std::vector<MicroBatch>& micro_batches) const;
  std::int64_t target_tokens(const std::vector<MicroBatch>& micro_batches) const;

  TrainerSpec spec_;
  const Mesh& mesh_;
  TrainerOptions options_;
  Sharding sharding_;
  ParameterRegistry registry_;
  std::unique_ptr<RotaryTable> rotary_;
  std::vector<std::unique_ptr<StageModel>> stages_;
  std::unique_ptr<GradientReducer> reducer_;
  std::unique_ptr<UnitGatherer> gatherer_;  ///< with ZeRO 3
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<LossScaler> loss_scaler_;
  std::unique_ptr<PipelineExecutor> executor_;
};

/// The type in which parameters and activations are kept, and the one in which gradients are accumulated.
at::ScalarType parameter_type(const specs::TrainingSpec& training);
at::ScalarType gradient_type(const specs::TrainingSpec& training);

}  // namespace runtime
