#include "runtime/train/trainer.h"

#include <cmath>
#include <utility>

#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>

#include "runtime/optimizer/gradient_norm.h"
#include "runtime/optimizer/learning_rate.h"

namespace runtime {

namespace {

at::ScalarType scalar_type(specs::Precision precision) {
  switch (precision) {
    case specs::Precision::fp64:
      return at::kDouble;
    case specs::Precision::fp32:
      return at::kFloat;
    case specs::Precision::fp16:
      return at::kHalf;
    default:
      return at::kBFloat16;
  }
}

}  // namespace

at::ScalarType parameter_type(const specs::TrainingSpec& training) { return scalar_type(training.precision); }

at::ScalarType gradient_type(const specs::TrainingSpec& training) {
  return training.precision == specs::Precision::fp64 ? at::kDouble
                                                      : scalar_type(training.gradient_precision);
}

Trainer::Trainer(TrainerSpec spec, const Mesh& mesh, TrainerOptions options)
    : spec_(std::move(spec)), mesh_(mesh), options_(options) {
  build();
}

Trainer::~Trainer() = default;

void Trainer::build() {
  const specs::ModelSpec& model = spec_.model;
  const specs::TrainingSpec& training = spec_.training;
  const at::ScalarType type = parameter_type(training);
  if (model.position_encoding == specs::PositionEncoding::rotary)
    rotary_ =
        std::make_unique<RotaryTable>(model.rotary, model.attention.head_dim, training.sequence_length, type);

  std::vector<const StageModel*> by_stage(spec_.placement.stages.size(), nullptr);
  bool rows_shared = false;
  for (const std::int64_t stage : mesh_.stages()) {
    const auto index = static_cast<std::size_t>(stage);
    const StageBuilder builder(model, training, mesh_, spec_.placement.sequence_parallel, registry_, stage,
                               options_.faults);
    rows_shared = builder.sequence_parallel();
    stages_.push_back(std::make_unique<StageModel>(builder, spec_.placement.stages[index], rotary_.get()));
    by_stage[index] = stages_.back().get();
  }

  sharding_ = sharding_of(mesh_, spec_.placement.stages.front().zero);
  BucketOptions buckets;
  buckets.bytes = spec_.placement.buckets.gradient_bucket_bytes;
  buckets.minimum_bytes = spec_.placement.buckets.minimum_message_bytes;
  buckets.zero_stage = sharding_.stage;
  if (sharding_.stage >= 1) {
    buckets.shard_rank = sharding_.shard->rank();
    buckets.shard_ranks = sharding_.shard->size();
  }
  buckets.multiple = mesh_.gradient().size();
  buckets.value_type = type;
  buckets.gradient_type = gradient_type(training);
  registry_.materialize(buckets, training.seed);

  reducer_ = std::make_unique<GradientReducer>(
      registry_, mesh_,
      GradientReducer::Options{sharding_, options_.overlap_reduction, options_.faults,
                               spec_.placement.buckets.minimum_message_bytes});
  OptimizerOptions optimizer;
  for (const specs::PipelineStage& stage : spec_.placement.stages)
    optimizer.eighths_on_host.push_back(stage.offload.optimizer.eighths);
  optimizer.delayed = spec_.placement.stages.front().offload.delayed_update;
  optimizer.skip_gather = options_.faults.update_skips_gather;
  optimizer.aliases_device = options_.faults.offload_aliases_device;
  optimizer_ =
      std::make_unique<Optimizer>(registry_, training.optimizer, sharding_, optimizer, training.seed);
  if (optimizer_->offloads())
    reducer_->hand_over_to([this](std::size_t bucket, std::function<void()> wait_until_whole) {
      optimizer_->gradients_on_their_way(bucket, std::move(wait_until_whole));
    });
  specs::LossScalingSpec scaling = training.loss_scaling;
  if (options_.faults.ignores_hysteresis) scaling.hysteresis = 1;
  loss_scaler_ = std::make_unique<LossScaler>(scaling, training.precision == specs::Precision::fp16);
  executor_ = std::make_unique<PipelineExecutor>(spec_.schedule, mesh_, std::move(by_stage), *reducer_,
                                                 StreamShape{model.hidden, rows_shared, type});
  executor_->other_masks_on_replay = options_.faults.other_masks_on_replay;
  executor_->synchronises = options_.debug_synchronise;
  if (sharding_.stage < 3) return;
  const specs::PipelineStage& stage = spec_.placement.stages.front();
  gatherer_ = std::make_unique<UnitGatherer>(
      registry_, *sharding_.shard,
      UnitGatherer::Options{spec_.placement.buckets.prefetch_units, stage.zero.kept_units, options_.faults});
  executor_->gather_with(*gatherer_);
}

std::int64_t Trainer::target_tokens(const std::vector<MicroBatch>& micro_batches) const {
  std::int64_t own = 0;
  for (const MicroBatch& batch : micro_batches) own += batch.targets.ge(0).sum().item<std::int64_t>();
  const at::Tensor total = at::zeros({1}, at::kLong).fill_(own);
  mesh_.data().all_reduce(total);
  return total.item<std::int64_t>();
}

PipelineInput Trainer::pipeline_input(const std::vector<MicroBatch>& micro_batches) const {
  PipelineInput input;
  input.micro_batches = &micro_batches;
  input.step = optimizer_->updates();
  input.loss_weights.assign(micro_batches.size(),
                            loss_scaler_->scale() / static_cast<double>(target_tokens(micro_batches)));
  if (options_.faults.mean_of_micro_batches) {
    const auto total = static_cast<double>(micro_batches.size()) * static_cast<double>(mesh_.data().size());
    for (std::size_t i = 0; i < micro_batches.size(); ++i)
      input.loss_weights[i] = 1 / (total * micro_batches[i].targets.ge(0).sum().item<double>());
  }
  return input;
}

StepResult Trainer::compute_gradients(const std::vector<MicroBatch>& micro_batches) {
  const PipelineInput input = pipeline_input(micro_batches);
  reducer_->begin_step(static_cast<std::int64_t>(micro_batches.size()));
  const double loss = executor_->run(input);
  reducer_->finish();
  optimizer_->wait_for_gradients();
  if (options_.on_gradients) options_.on_gradients(*this);

  // One message for both: the loss stands on one rank of each replica, the norm is spread over all.
  const double share = squared_norm_share(registry_, mesh_, sharding_, options_.faults);
  const at::Tensor sums = at::zeros({2}, at::kDouble);
  auto* values = sums.data_ptr<double>();
  values[0] = mesh_.tensor().rank() == 0 && mesh_.context().rank() == 0 ? loss : 0;
  values[1] = share;
  mesh_.world().all_reduce(sums);
  StepResult result;
  result.loss_scale = loss_scaler_->scale();
  result.loss = values[0] / result.loss_scale;
  result.gradient_norm = std::sqrt(options_.faults.local_norm ? share : values[1]) / result.loss_scale;
  result.finite = std::isfinite(result.loss) && std::isfinite(result.gradient_norm);
  if (options_.faults.decides_alone) result.finite = std::isfinite(share);
  return result;
}

StepResult Trainer::step(const std::vector<MicroBatch>& micro_batches) {
  const double rate = learning_rate(spec_.training, optimizer_->updates());
  if (spec_.training.gradient_clip == 0 && spec_.training.precision != specs::Precision::fp16)
    optimizer_->update_early(rate);
  StepResult result = compute_gradients(micro_batches);
  result.learning_rate = rate;
  result.updated = result.finite;
  if (result.updated)
    optimizer_->update(
        rate, clip_coefficient(result.gradient_norm, spec_.training.gradient_clip) / result.loss_scale);
  else
    optimizer_->skip();
  loss_scaler_->update(result.updated);
  return result;
}

double Trainer::evaluate(const std::vector<MicroBatch>& micro_batches) {
  const double loss = executor_->evaluate(pipeline_input(micro_batches));
  const at::Tensor sum = at::zeros({1}, at::kDouble);
  if (mesh_.tensor().rank() == 0 && mesh_.context().rank() == 0) sum.fill_(loss);
  mesh_.world().all_reduce(sum);
  return sum.item<double>() / loss_scaler_->scale();
}

at::Tensor Trainer::logits(const MicroBatch& batch) const {
  TORCH_CHECK(stages_.size() == 1 && stages_[0]->has_embedding() && stages_[0]->has_output() &&
                  mesh_.tensor().size() == 1 && sharding_.stage < 3,
              "logits of a model that is spread over ranks");
  const c10::AutoGradMode no_gradients(false);
  ForwardContext context;
  context.batch = &batch;
  context.sequences = batch.tokens.size(0);
  context.length = batch.tokens.size(1);
  context.training = false;
  return stages_[0]->logits(stages_[0]->embed(context), context);
}

}  // namespace runtime
