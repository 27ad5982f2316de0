#include "tests/numerics/reference_runs.h"

#include <exception>
#include <utility>

namespace runtime::numerics {

TrainingCase single_process(const TrainingCase& training) {
  TrainingCase single;
  single.model = training.model;
  single.tied = training.tied;
  single.sequence_length = training.sequence_length;
  single.fixed_layers = training.layers();
  single.precision = training.precision;
  single.gradient_precision = training.gradient_precision;
  single.optimizer = training.optimizer;
  if (training.offload.delayed_update) single.offload = training.offload;
  single.dropout = training.dropout;
  single.attention_dropout = training.attention_dropout;
  single.attention = training.attention;
  single.gradient_clip = training.gradient_clip;
  single.steps = training.steps;
  single.warmup_steps = training.warmup_steps;
  single.learnable = training.learnable;
  single.initial_loss_scale = training.initial_loss_scale;
  single.loss_scale_window = training.loss_scale_window;
  single.spoiled_steps = training.spoiled_steps;
  return single;
}

const TrainingOutcome& ReferenceRuns::of(const TrainingCase& training, WorkerPool& pool) {
  const TrainingCase single = single_process(training);
  std::promise<TrainingOutcome> promise;
  std::unique_lock lock(mutex_);
  const auto [place, is_new] = runs_.try_emplace(to_bytes(single));
  std::shared_future<TrainingOutcome>& run = place->second;
  if (is_new) run = promise.get_future().share();
  lock.unlock();
  if (is_new) try {
      promise.set_value(train(pool, single));
    } catch (...) {
      promise.set_exception(std::current_exception());
    }
  return run.get();
}

}  // namespace runtime::numerics
