#include "tests/runtime/data_parallel/zero_job.h"

#include <algorithm>

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/comm/process_groups.h"
#include "runtime/mesh/mesh.h"
#include "runtime/model/counter_random.h"
#include "runtime/monitor/tensor_memory.h"
#include "runtime/train/trainer.h"

namespace runtime {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CountedStep, events, wire_bytes, messages, peak_whole_buckets,
                                   peak_gathered_units, gathers, whole_gradients_left, whole_parameters_left,
                                   bucket_elements, bucket_units, peak_bytes, most_travelling, loss,
                                   gradient_norm)

namespace {

using nlohmann::json;
using numerics::TrainingCase;

class Events final : public UnitPassListener {
 public:
  void forward_begins(std::int64_t unit) override { list.push_back(fmt::format("forward {}", unit)); }
  void forward_ends(std::int64_t) override {}
  void backward_begins(std::int64_t unit) override { list.push_back(fmt::format("backward {}", unit)); }
  void backward_ends(std::int64_t) override {}
  std::vector<std::string> list;
};

std::vector<MicroBatch> batches_of(const TrainingCase& training, std::int64_t data_rank) {
  std::vector<MicroBatch> batches;
  for (std::int64_t index = 0; index < training.micro_batches; ++index) {
    MicroBatch batch;
    batch.first_sequence = (data_rank * training.micro_batches + index) * training.micro_batch();
    batch.tokens = at::empty({training.micro_batch(), training.sequence_length}, at::kLong);
    batch.targets = at::empty_like(batch.tokens);
    for (std::int64_t i = 0; i < batch.tokens.numel(); ++i) {
      const RandomBlock bits =
          philox(11, static_cast<std::uint64_t>(batch.first_sequence), static_cast<std::uint64_t>(i));
      batch.tokens.data_ptr<std::int64_t>()[i] = bits[0] % TrainingCase::vocabulary;
      batch.targets.data_ptr<std::int64_t>()[i] = bits[1] % TrainingCase::vocabulary;
    }
    batches.push_back(std::move(batch));
  }
  return batches;
}

void count_buckets(const Trainer& trainer, CountedStep& step) {
  for (const Bucket& bucket : trainer.parameters().buckets()) {
    step.whole_gradients_left += bucket.gradients.defined() ? 1 : 0;
    step.whole_parameters_left += bucket.values.defined() ? 1 : 0;
    step.bucket_elements.push_back(bucket.numel);
    step.bucket_units.push_back(bucket.unit.unit);
  }
}

std::string run_counted(WorkerContext& context, const std::string& request) {
  install_counting_allocator();
  const TrainingCase training = numerics::case_from_bytes(request);
  TrainerSpec spec{model_of(training), training_of(training), placement_of(training), schedule_of(training)};
  const Mesh mesh(spec.placement, context.groups);
  Trainer trainer(std::move(spec), mesh,
                  {.overlap_reduction = training.overlap_reduction,
                   .faults = training.faults,
                   .debug_synchronise = training.debug_synchronise});
  const std::vector<MicroBatch> batches = batches_of(training, mesh.coordinates().data);
  trainer.step(batches);

  CountedStep step;
  Events events;
  trainer.executor().listen(events);
  trainer.reducer().on_launch = [&](std::size_t bucket) {
    events.list.push_back(fmt::format("reduce {}", bucket));
  };
  trainer.executor().on_action = [&](const specs::Action&) {
    step.most_travelling = std::max(step.most_travelling, trainer.reducer().travelling());
  };
  context.groups.traffic().reset();
  context.groups.traffic().trace(true);
  reset_peak_tensor_memory();
  const StepResult result = trainer.step(batches);
  step.loss = result.loss;
  step.gradient_norm = result.gradient_norm;
  const TensorMemory memory = tensor_memory();
  for (const auto& [memory_class, name] : specs::EnumNames<specs::MemoryClass>::names)
    step.peak_bytes[std::string(name)] = memory.peak_of(memory_class);
  for (const auto& [key, count] : context.groups.traffic().counts())
    step.wire_bytes[fmt::format("{} {} {}", key.group, specs::name_of(key.op), c10::toString(key.dtype))] =
        count.wire_bytes;
  for (const CommunicationCall& call : context.groups.traffic().calls())
    step.messages.emplace_back(fmt::format("{} {}", call.group, specs::name_of(call.op)), call.payload_bytes);
  context.groups.traffic().trace(false);
  step.events = std::move(events.list);
  step.peak_whole_buckets = trainer.reducer().peak_whole_buckets();
  if (trainer.gatherer() != nullptr) {
    step.peak_gathered_units = trainer.gatherer()->peak_gathered();
    step.gathers = trainer.gatherer()->gathers();
  }
  count_buckets(trainer, step);
  return json(step).dump();
}

/// A tied table on the first and last of two stages, each with two replicas; rank r's gradient is 1, 3, 5, 7.
std::string reduce_tied_table(WorkerContext& context, const std::string& zero_stage) {
  TrainingCase training;
  training.pipeline = training.data = 2;
  training.zero.stage = std::stoll(zero_stage);
  const Mesh mesh(placement_of(training), context.groups);
  const Sharding sharding = sharding_of(mesh, placement_of(training).stages.front().zero);
  ParameterRegistry registry;
  ParameterSpec spec;
  spec.name = "table";
  spec.global_shape = spec.local_shape = {61, 3};
  spec.contract = Sharded{};
  spec.box = {{0, 0}, {61, 3}};
  spec.tied = true;
  spec.primary = mesh.pipeline_rank() == 0;
  ParameterBlock& table = registry.add(spec, {mesh.pipeline_rank(), 0});
  BucketOptions buckets;
  buckets.zero_stage = sharding.stage;
  buckets.shard_rank = mesh.shard().rank();
  buckets.shard_ranks = mesh.shard().size();
  buckets.multiple = mesh.gradient().size();
  registry.materialize(buckets, 1);
  GradientReducer reducer(registry, mesh, {.sharding = sharding, .faults = {}});
  reducer.begin_step(1);
  table.accumulate(at::full({61, 3}, 2 * static_cast<double>(mesh.rank()) + 1, at::kFloat));
  reducer.reduce_tied();
  reducer.reduce_stage(mesh.pipeline_rank());
  reducer.finish();
  const at::Tensor& shard = registry.buckets().front().gradient_shard;
  return std::to_string(shard[0].item<double>() / 2);  // over two replicas
}

}  // namespace

WorkerJobs zero_jobs() { return {{"count", run_counted}, {"tied", reduce_tied_table}}; }

std::vector<CountedStep> count_step(WorkerPool& pool, const TrainingCase& training) {
  std::vector<CountedStep> steps;
  for (const WorkerResult& result : pool.run("count", to_bytes(training), training.ranks())) {
    if (!result.ok()) throw std::runtime_error(training.name() + ": " + result.error);
    steps.push_back(json::parse(result.value).get<CountedStep>());
  }
  return steps;
}

}  // namespace runtime
