#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "specs/language/catalog.h"
#include "specs/language/checks.h"

namespace specs {

namespace {

constexpr std::int64_t byte_symbols = 256;

template <class Enum>
std::string names_text(const std::vector<Enum>& values) {
  std::vector<std::string> names;
  for (const Enum value : values) names.emplace_back(name_of(value));
  return fmt::format("{}", fmt::join(names, ", "));
}

template <class Enum>
bool holds(const std::vector<Enum>& values, Enum value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

void check_precision_against_devices(const Experiment& experiment, CheckReport& report) {
  const Precision precision = experiment.training.precision;
  for (const ClusterGroup& group : experiment.cluster.groups) {
    const DeviceSpec& device = group.node.device;
    if (device.peak_flops.empty() || device.peak_flops.contains(precision)) continue;
    std::vector<Precision> supported;
    for (const auto& [known, rate] : device.peak_flops) supported.push_back(known);
    const bool wants_bf16 = precision == Precision::bf16 && device.peak_flops.contains(Precision::fp16);
    report.error({"training.precision", "cluster.node", "training"},
                 fmt::format("training.precision \"{}\" is not supported by {}, which computes in {}",
                             name_of(precision), device.name, names_text(supported)),
                 wants_bf16 ? "use \"fp16\" with loss scaling, or another device"
                            : "use one of its precisions, or another device");
  }
}

void check_against_stack(const Experiment& experiment, CheckReport& report) {
  const TrainingSpec& training = experiment.training;
  const Result<StackSpec> stack = catalog_stack(training.stack);
  if (!stack) return;
  if (!holds(stack->precisions, training.precision))
    report.error({"training.precision", "training.stack", "training"},
                 fmt::format("training.precision \"{}\" is not supported by stack \"{}\", which trains in {}",
                             name_of(training.precision), stack->name, names_text(stack->precisions)),
                 training.precision == Precision::fp64 ? "only stack \"dsrun\" trains in fp64"
                                                       : "use one of its precisions, or another stack");
  if (!holds(stack->optimizers, training.optimizer.type))
    report.error({"training.optimizer.type", "training.stack", "training"},
                 fmt::format("training.optimizer.type \"{}\" is not supported by stack \"{}\", which has {}",
                             name_of(training.optimizer.type), stack->name, names_text(stack->optimizers)));
  if (!holds(stack->attention, training.attention))
    report.error({"training.attention", "training.stack", "training"},
                 fmt::format("training.attention \"{}\" is not supported by stack \"{}\", which has {}",
                             name_of(training.attention), stack->name, names_text(stack->attention)));
  for (const ClusterGroup& group : experiment.cluster.groups)
    if (group.node.device.generation == "cpu" && !stack->cpu_devices)
      report.error(
          {"training.stack", "cluster.node", "training"},
          fmt::format("training.stack \"{}\" does not run on CPUs ({})", stack->name, group.node.name),
          "use stack \"dsrun\", or nodes with GPUs");
}

void check_learning_rate(const TrainingSpec& training, CheckReport& report) {
  const LearningRateSchedule& schedule = training.schedule;
  if (schedule.decay_steps > 0 && schedule.decay_steps < schedule.warmup_steps)
    report.error(
        {"training.lr_schedule.decay_steps", "training.lr_schedule.warmup_steps"},
        fmt::format("training.lr_schedule.decay_steps {} < warmup_steps {}: the decay would end before it "
                    "begins",
                    schedule.decay_steps, schedule.warmup_steps),
        "both count optimizer updates from the start");
  if (schedule.warmup_steps > training.steps)
    report.warning(
        {"training.lr_schedule.warmup_steps", "training.steps"},
        fmt::format("training.lr_schedule.warmup_steps {} > training.steps {}: the rate never reaches lr",
                    schedule.warmup_steps, training.steps));
}

/// Keys that were changed but change nothing deserve a word.
void check_unused(const TrainingSpec& training, CheckReport& report) {
  const OptimizerSpec& optimizer = training.optimizer;
  const OptimizerSpec usual;
  const auto unused = [&report](bool changed, const char* path, const std::string& why) {
    if (changed && report.given(path)) report.warning({path}, fmt::format("{} has no effect {}", path, why));
  };
  if (training.precision != Precision::fp16)
    unused(training.loss_scaling != LossScalingSpec{}, "training.loss_scaling",
           fmt::format("with precision \"{}\"", name_of(training.precision)));
  const std::string with_optimizer = fmt::format("with optimizer \"{}\"", name_of(optimizer.type));
  if (optimizer.type != OptimizerKind::sgd)
    unused(optimizer.momentum != usual.momentum, "training.optimizer.momentum", with_optimizer);
  if (optimizer.type != OptimizerKind::adamw) {
    unused(optimizer.beta1 != usual.beta1, "training.optimizer.beta1", with_optimizer);
    unused(optimizer.beta2 != usual.beta2, "training.optimizer.beta2", with_optimizer);
    unused(optimizer.epsilon != usual.epsilon, "training.optimizer.epsilon", with_optimizer);
  }
}

bool below_16_bits(Precision precision) {
  return precision == Precision::fp8 || precision == Precision::mxfp8 || precision == Precision::nvfp4;
}

/// What the cost models do not price must not be asked for: the plan would say that it made no difference.
void check_priced_precisions(const TrainingSpec& training, CheckReport& report) {
  const auto unless_alike = [&](const char* key, Precision value, Precision priced) {
    if (storage_bytes(value) == storage_bytes(priced) && !below_16_bits(value)) return;
    report.error(
        {fmt::format("training.{}", key), "training.precision"},
        fmt::format("training.{} \"{}\" beside precision \"{}\" is not priced yet: the cost models "
                    "count {} bytes a value, as \"{}\"",
                    key, name_of(value), name_of(training.precision), storage_bytes(priced), name_of(priced)),
        fmt::format("leave it out, or use \"{}\"", name_of(priced)));
  };
  const Precision stored = below_16_bits(training.precision) ? Precision::bf16 : training.precision;
  unless_alike("parameter_precision", training.parameter_precision.value_or(stored), stored);
  unless_alike("gather_precision", training.gather_precision.value_or(stored), stored);
  unless_alike("optimizer_state_precision", training.optimizer_state_precision,
               training.precision == Precision::fp64 ? Precision::fp64 : Precision::fp32);
}

}  // namespace

void check_training(const Experiment& experiment, CheckReport& report) {
  const TrainingSpec& training = experiment.training;
  const ModelSpec& model = experiment.model;
  check_precision_against_devices(experiment, report);
  check_against_stack(experiment, report);
  check_learning_rate(training, report);
  check_unused(training, report);
  check_priced_precisions(training, report);

  const bool learned = model.position_encoding == PositionEncoding::learned;
  if (learned && model.positions > 0 && training.sequence_length > model.positions)
    report.error(
        {"training.sequence_length", "model.positions", "training"},
        fmt::format("training.sequence_length {} > model.positions {}: tokens beyond the learned position "
                    "table have no position",
                    training.sequence_length, model.positions),
        fmt::format("at most {}, or a larger model.positions", model.positions));
  if (storage_bytes(training.gradient_precision) < storage_bytes(training.precision))
    report.error({"training.gradient_precision", "training.precision"},
                 fmt::format("training.gradient_precision \"{}\" is narrower than training.precision \"{}\"",
                             name_of(training.gradient_precision), name_of(training.precision)));
  if (below_16_bits(training.gradient_precision))
    report.error({"training.gradient_precision"},
                 fmt::format("training.gradient_precision \"{}\": gradients accumulate in 16 bits or more",
                             name_of(training.gradient_precision)),
                 "use \"fp32\" or \"bf16\"");
  if (training.loss_scaling.minimum_scale > training.loss_scaling.initial_scale)
    report.error({"training.loss_scaling.minimum_scale", "training.loss_scaling.initial_scale"},
                 fmt::format("training.loss_scaling.minimum_scale {} > initial_scale {}",
                             training.loss_scaling.minimum_scale, training.loss_scaling.initial_scale));
  if (training.data.tokenizer == "byte" && model.vocabulary < byte_symbols && model.vocabulary > 0)
    report.warning(
        {"model.vocabulary", "training.data.tokenizer"},
        fmt::format("model.vocabulary {} < {}, the symbols of the byte tokenizer: text cannot be trained "
                    "on",
                    model.vocabulary, byte_symbols),
        "a vocabulary of 256, or tokenizer \"none\" with token files");
}

}  // namespace specs
