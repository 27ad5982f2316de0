// Runs one pipeline rank's part of a lowered schedule, whatever the schedule: the order of the actions is the
// schedule's, and nothing here knows of 1F1B or any other kind.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "runtime/data_parallel/gradient_reducer.h"
#include "runtime/data_parallel/unit_gatherer.h"
#include "runtime/mesh/mesh.h"
#include "runtime/model/forward_context.h"
#include "runtime/model/stage_model.h"
#include "specs/schedule/schedule.h"

namespace runtime {

/// What one step feeds to the pipeline.
struct PipelineInput {
  const std::vector<MicroBatch>* micro_batches = nullptr;
  std::vector<double> loss_weights;  ///< of a target token, by micro-batch
  std::int64_t step = 0;
};

/// The residual stream at a stage boundary.
struct StreamShape {
  std::int64_t hidden = 0;
  bool rows_shared = false;  ///< each rank of the tensor axis holds its share of the rows
  at::ScalarType type = at::kFloat;
};

class PipelineExecutor {
 public:
  /// `stages` by stage index, those of this rank; null elsewhere. References must outlive it.
  PipelineExecutor(const specs::Schedule& lowered, const Mesh& mesh, std::vector<const StageModel*> stages,
                   GradientReducer& reducer, StreamShape stream);

  /// Runs all actions of this rank; gradients are then whole once the reducer has finished. Returns the sum
  /// of the weighted losses of the micro-batches, 0 on a rank without the output layer.
  double run(const PipelineInput& input);

  /// Forward alone, stage after stage, without schedule or gradients: the sum of the weighted losses.
  double evaluate(const PipelineInput& input);

  /// With ZeRO 3: gathers the units' parameters in the order in which the schedule uses them. It must outlive
  /// the executor.
  void gather_with(UnitGatherer& gatherer);
  /// Told of the passes through every unit, for traces and tests. It must outlive the executor.
  void listen(UnitPassListener& listener) { listeners_.add(listener); }
  /// Waits for all communication under way after each backward pass.
  bool synchronises = false;

  /// Called before each action, for traces and tests.
  std::function<void(const specs::Action&)> on_action;
  /// Called by `evaluate`.
  UnitObserver on_unit_output;
  bool other_masks_on_replay = false;  ///< fault injection

 private:
  using Key = std::pair<std::int32_t, std::int32_t>;  ///< stage, micro-batch

  /// A micro-batch on its way through a stage, from its forward to the end of its backward.
  struct Passage {
    ForwardContext context;
    at::Tensor input;  ///< a leaf
    at::Tensor output;
  };
  /// A tensor that is arriving, or has.
  struct Arrival {
    at::Tensor tensor;
    PendingWork work;
  };

  /// Tells several.
  class Listeners final : public UnitPassListener {
   public:
    void add(UnitPassListener& listener) { all_.push_back(&listener); }
    bool empty() const { return all_.empty(); }
    void forward_begins(std::int64_t unit) override {
      for (UnitPassListener* listener : all_) listener->forward_begins(unit);
    }
    void forward_ends(std::int64_t unit) override {
      for (UnitPassListener* listener : all_) listener->forward_ends(unit);
    }
    void backward_begins(std::int64_t unit) override {
      for (UnitPassListener* listener : all_) listener->backward_begins(unit);
    }
    void backward_ends(std::int64_t unit) override {
      for (UnitPassListener* listener : all_) listener->backward_ends(unit);
    }

   private:
    std::vector<UnitPassListener*> all_;
  };

  std::vector<UnitUses> passes() const;
  void synchronise();
  void perform(const specs::Action& action);
  void forward(Key key);
  void backward(Key key, bool defer_weights);
  void weight_gradient(Key key);
  void finish(Key key);
  void receive(std::map<Key, Arrival>& into, Key key, std::int32_t from_stage, int direction);
  void send(PendingWork& previous, const at::Tensor& tensor, Key key, std::int32_t to_stage, int direction);
  at::Tensor take(std::map<Key, Arrival>& from, Key key);

  ForwardContext make_context(std::int32_t micro_batch, bool training);
  at::Tensor stream_like(const ForwardContext& context) const;
  bool on_this_rank(std::int32_t stage) const;
  int tag(Key key, int direction) const;

  const specs::Schedule& schedule_;
  const Mesh& mesh_;
  std::vector<const StageModel*> stages_;
  GradientReducer& reducer_;
  StreamShape stream_;
  UnitGatherer* gatherer_ = nullptr;
  Listeners listeners_;

  const PipelineInput* input_ = nullptr;
  double loss_ = 0;
  std::map<Key, Passage> passages_;
  std::map<Key, Arrival> activations_;  ///< by the stage they enter
  std::map<Key, Arrival> gradients_;    ///< by the stage whose output they belong to
  std::map<Key, at::Tensor> outgoing_gradients_;
  PendingWork activation_sent_;
  PendingWork gradient_sent_;
};

}  // namespace runtime
