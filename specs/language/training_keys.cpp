#include <algorithm>
#include <string>

#include "specs/language/catalog.h"
#include "specs/language/catalog_entries.h"
#include "specs/language/section_keys.h"
#include "specs/language/stack_feature.h"

namespace specs {

namespace {

constexpr std::int64_t most = 1'000'000'000'000;
constexpr std::int64_t largest_batch = 1'000'000;  // the plan writes one action a micro-batch
constexpr NumberRange below_one{.minimum = 0, .maximum = 1, .open_maximum = true};

void visit_optimizer(KeyVisitor& visitor, OptimizerSpec& optimizer) {
  visitor.choice({"type", "the update rule"}, optimizer.type);
  visitor.number({"lr", "peak learning rate"}, optimizer.learning_rate,
                 {.minimum = 0, .maximum = 1000, .open_minimum = true});
  visitor.number({"beta1", "adamw: decay of the first moment"}, optimizer.beta1, below_one);
  visitor.number({"beta2", "adamw: decay of the second moment"}, optimizer.beta2, below_one);
  visitor.number({"epsilon", "adamw: added to the root of the second moment"}, optimizer.epsilon,
                 {.minimum = 0, .maximum = 1, .open_minimum = true});
  visitor.number({"weight_decay", "decoupled"}, optimizer.weight_decay, {0, 1000});
  visitor.number({"momentum", "sgd"}, optimizer.momentum, below_one);
}

void visit_learning_rate_schedule(KeyVisitor& visitor, LearningRateSchedule& schedule) {
  visitor.integer({"warmup_steps", "optimizer updates of linear warm-up"}, schedule.warmup_steps, {0, most});
  visitor.choice({"decay", "after the warm-up"}, schedule.decay);
  visitor.integer({"decay_steps", "updates until the rate is lowest; 0: all"}, schedule.decay_steps,
                  {0, most});
  visitor.number({"minimum_ratio", "lowest rate over the peak rate"}, schedule.minimum_ratio, fraction);
}

void visit_loss_scaling(KeyVisitor& visitor, LossScalingSpec& scaling) {
  visitor.number({"initial_scale", "of the loss"}, scaling.initial_scale, positive);
  visitor.integer({"window", "updates without overflow before the scale grows"}, scaling.window, {1, most});
  visitor.integer({"hysteresis", "overflows before the scale shrinks"}, scaling.hysteresis, {1, 1000});
  visitor.number({"minimum_scale", "an overflow here ends the run"}, scaling.minimum_scale, positive);
  visitor.number({"factor", "by which the scale grows and shrinks"}, scaling.factor,
                 {.minimum = 1, .maximum = 1024, .open_minimum = true});
}

void visit_data(KeyVisitor& visitor, DataSpec& data) {
  visitor.one_of({"tokenizer", "byte: one token a byte; none: the files hold token ids"}, data.tokenizer,
                 {"byte", "none"});
  visitor.flag({"shuffle", "sequences in random order"}, data.shuffle);
  visitor.number({"held_back_fraction", "of the text, never trained on"}, data.held_back_fraction, below_one);
  visitor.integer({"evaluation_batches", "of global_batch sequences each"}, data.evaluation_batches,
                  {0, 1'000'000});
  visitor.integer({"evaluate_every", "updates; 0: only at the end"}, data.evaluate_every, {0, most});
}

void visit_local_steps(KeyVisitor& visitor, LocalStepsSpec& local_steps) {
  visitor.number({"outer_lr", "of the update on the averaged change"}, local_steps.outer_learning_rate,
                 {.minimum = 0, .maximum = 1000, .open_minimum = true});
  visitor.number({"outer_momentum", "of that update"}, local_steps.outer_momentum, below_one);
  visitor.flag({"nesterov", "that update looks ahead"}, local_steps.nesterov);
}

/// What the software stack does where the experiment does not say.
void apply_stack_defaults(TrainingSpec& training) {
  const bool narrow = storage_bytes(training.precision) == 2;
  training.gradient_precision = narrow ? Precision::fp32 : training.precision;
  training.optimizer_state_precision = narrow ? Precision::fp32 : training.precision;
  const Result<StackSpec> stack = catalog_stack(training.stack);
  if (!stack) return;
  if (narrow) training.gradient_precision = stack->gradient_precision;
  const bool flash = std::find(stack->attention.begin(), stack->attention.end(),
                               AttentionImplementation::flash) != stack->attention.end();
  training.attention = flash ? AttentionImplementation::flash : AttentionImplementation::unfused;
}

void visit_precisions(KeyVisitor& visitor, TrainingSpec& training) {
  visitor.choice({"gradient_precision", "of the accumulated gradient",
                  "the stack's for 16-bit and narrower training, else precision"},
                 training.gradient_precision);
  if (visitor.reads()) training.reduction_precision = training.gradient_precision;
  visitor.choice({"reduction_precision", "in which gradients cross the network", "gradient_precision"},
                 training.reduction_precision);
  visitor.optional_choice(
      {"parameter_precision", "of parameters between steps", "as precision stores them", true},
      training.parameter_precision);
  visitor.optional_choice(
      {"gather_precision", "in which sharded parameters are gathered", "as precision stores them", true},
      training.gather_precision);
  visitor.choice({"optimizer_state_precision", "of moments", "fp32; fp64 for fp64 training"},
                 training.optimizer_state_precision);
}

}  // namespace

void visit_keys(KeyVisitor& visitor, TrainingSpec& training) {
  visitor.integer({"global_batch", "sequences per optimizer update", "256"}, training.global_batch,
                  {1, largest_batch});
  visitor.integer({"sequence_length", "tokens per sequence", "model.positions where learned, else 4096"},
                  training.sequence_length, {1, 1'000'000'000});
  visitor.choice({"precision", "of the computation", "bf16; fp16 where a device has no bf16; fp32 on CPUs"},
                 training.precision);
  visitor.one_of({"stack", "software stack whose limits and habits apply"}, training.stack,
                 catalog_names(CatalogKind::stack));
  visitor.text({"stack_release", "of the stack; empty: the latest known", {}, true}, training.stack_release);
  if (visitor.reads()) apply_stack_defaults(training);
  visitor.list_of({"stack_features", "what the run or the build does beyond the profile", "none", true},
                  training.stack_features, all_names<StackFeature>());
  visitor.flag({"compile", "kernels fused by a compiler"}, training.compile);
  visitor.integer({"swap_buffer_elements",
                   "of one pinned host buffer of an offload to NVMe: 5 buffers of parameters, 4 of optimizer "
                   "states; 0: 1e8",
                   {},
                   true},
                  training.swap_buffer_elements, {0, 1'000'000'000'000});
  visitor.integer(
      {"gradient_bucket_elements", "gradients reduced in one collective; 0: the stack's", {}, true},
      training.gradient_bucket_elements, {0, 1'000'000'000'000});
  visitor.integer(
      {"gather_bucket_elements", "updated parameters gathered in one collective; 0: the stack's", {}, true},
      training.gather_bucket_elements, {0, 1'000'000'000'000});
  visit_precisions(visitor, training);
  visitor.choice({"attention", "which kernel", "flash where the stack has it"}, training.attention);
  visitor.table({"optimizer", "the update rule and its constants"},
                [&training](KeyVisitor& keys) { visit_optimizer(keys, training.optimizer); });
  visitor.table({"lr_schedule", "the learning rate over the updates"},
                [&training](KeyVisitor& keys) { visit_learning_rate_schedule(keys, training.schedule); });
  visitor.table({"loss_scaling", "dynamic loss scaling, fp16 only"},
                [&training](KeyVisitor& keys) { visit_loss_scaling(keys, training.loss_scaling); });
  visitor.number({"gradient_clip", "largest global norm; 0: off"}, training.gradient_clip, {0, 1e12});
  visitor.number({"dropout", "probability, of the embedding and what is added to the residual stream"},
                 training.dropout, below_one);
  visitor.number({"attention_dropout", "probability, of the attention weights", {}, true},
                 training.attention_dropout, below_one);
  visitor.integer(
      {"steps", "optimizer updates of a run", "tokens / (global_batch · sequence_length), else 1000"},
      training.steps, {1, most});
  visitor.number({"tokens", "of the whole training run, for days and cost; 0: not asked"}, training.tokens,
                 {0, 1e18});
  std::int64_t seed = static_cast<std::int64_t>(training.seed);
  visitor.integer({"seed", "of weights, dropout and data order"}, seed, {});
  training.seed = static_cast<std::uint64_t>(seed);
  visitor.integer({"checkpoint_every", "updates; 0: only at the end"}, training.checkpoint_every, {0, most});
  visitor.table({"local_steps", "the outer update where search.local_steps allows more than 1"},
                [&training](KeyVisitor& keys) { visit_local_steps(keys, training.local_steps); });
  visitor.table({"data", "what is trained on"},
                [&training](KeyVisitor& keys) { visit_data(keys, training.data); });
}

}  // namespace specs
