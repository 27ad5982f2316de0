#include "runtime/checkpoint/trainer_checkpoint.h"

#include "runtime/optimizer/learning_rate.h"

namespace runtime {

SavedCheckpoint save_trainer(const std::filesystem::path& checkpoints, Trainer& trainer,
                             const TrainingProgress& progress) {
  const specs::TrainingSpec& training = trainer.spec().training;
  trainer.optimizer().finish_delayed();
  TrainingState state;
  state.step = progress.step;
  state.consumed_samples = progress.consumed_samples;
  state.optimizer_updates = trainer.optimizer().updates();
  if (state.optimizer_updates > 0) state.learning_rate = learning_rate(training, state.optimizer_updates - 1);
  state.seed = training.seed;
  state.loss_scaler = trainer.loss_scaler().state();
  state.plan_hash = progress.plan_hash;
  return save_checkpoint(checkpoints, state, tensor_pieces(trainer.optimizer()), trainer.mesh().world());
}

std::optional<LoadedCheckpoint> resume_trainer(const std::filesystem::path& checkpoints, Trainer& trainer) {
  auto loaded =
      load_newest_checkpoint(checkpoints, tensor_pieces(trainer.optimizer()), trainer.mesh().world());
  if (!loaded) return loaded;
  trainer.optimizer().set_updates(loaded->state.optimizer_updates);
  trainer.optimizer().parameters_from_masters();
  trainer.loss_scaler().restore(loaded->state.loss_scaler);
  return loaded;
}

}  // namespace runtime
