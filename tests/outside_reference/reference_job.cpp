#include "tests/outside_reference/reference_job.h"

#include <stdexcept>

#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/checkpoint/pretrained_weights.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/train/trainer.h"
#include "specs/interchange/hugging_face.h"
#include "specs/schedule/generate.h"
#include "specs/schedule/lowering.h"

namespace runtime {

namespace {

using nlohmann::json;

ReferenceRequest request_from(const std::string& text) {
  const json fields = json::parse(text);
  ReferenceRequest request;
  request.model = fields.at("model").get<std::string>();
  request.precision = fields.at("fp64").get<bool>() ? specs::Precision::fp64 : specs::Precision::fp32;
  request.tensor = fields.at("tensor");
  request.pipeline = fields.at("pipeline");
  request.data = fields.at("data");
  request.zero_stage = fields.at("zero");
  request.sequence_parallel = fields.at("sequence_parallel");
  return request;
}

at::Tensor read(const SafetensorsFile& file, const std::string& name) {
  const StoredTensor& stored = file.tensors().at(name);
  at::Tensor tensor = at::empty(stored.shape, *scalar_type_of(stored.dtype));
  file.read(stored.begin, tensor.mutable_data_ptr(), tensor.nbytes());
  return tensor;
}

/// The recipe of torch_models.py.
specs::TrainingSpec training_of(const ReferenceRequest& request, const at::Tensor& tokens) {
  specs::TrainingSpec training;
  training.global_batch = tokens.size(1);
  training.sequence_length = tokens.size(2);
  training.precision = training.gradient_precision = request.precision;
  training.optimizer.learning_rate = 1e-3;
  training.schedule.decay = specs::LearningRateDecay::constant;
  training.steps = tokens.size(0);
  training.gradient_clip = 1;
  return training;
}

TrainerSpec spec_of(const ReferenceRequest& request, const at::Tensor& tokens) {
  auto model = specs::import_hugging_face(request.model / "config.json");
  if (!model.ok()) throw std::runtime_error(model.diagnostics.render());
  specs::RegularPlacement regular;
  regular.tensor = request.tensor;
  regular.pipeline = request.pipeline;
  regular.data = request.data;
  regular.zero.stage = request.zero_stage;
  regular.sequence_parallel = request.sequence_parallel;
  regular.micro_batch = 1;
  regular.accumulation = tokens.size(1) / request.data;
  TrainerSpec spec{
      *model, training_of(request, tokens), specs::regular_placement(regular, model->layers), {}};
  specs::LoweringOptions options;
  options.tied_embeddings = model->tied_embeddings;
  options.zero_stage = request.zero_stage;
  spec.schedule =
      specs::lower(specs::generate_schedule(regular.schedule, static_cast<std::int32_t>(request.pipeline), 1,
                                            static_cast<std::int32_t>(regular.accumulation)),
                   options);
  return spec;
}

std::string train_job(WorkerContext& context, const std::string& text) {
  const ReferenceRequest request = request_from(text);
  const SafetensorsFile reference(request.model / "reference.safetensors");
  const at::Tensor tokens = read(reference, "tokens");
  const at::Tensor targets = read(reference, "targets");
  TrainerSpec spec = spec_of(request, tokens);
  if (const auto refusals = training_refusals(spec); !refusals.empty())
    throw std::runtime_error(refusals.front());
  const Mesh mesh(spec.placement, context.groups);
  Trainer trainer(std::move(spec), mesh);
  load_pretrained_weights(request.model, trainer);

  json result{{"losses", json::array()}, {"logit_difference", 0.0}};
  if (request.ranks() == 1) {
    const at::Tensor expected = read(reference, fmt::format("logits.{}", specs::name_of(request.precision)));
    const at::Tensor logits = trainer.logits({tokens[0], targets[0], 0});
    result["logit_difference"] = logits.sub(expected).abs().max().item<double>();
  }
  const std::int64_t share = tokens.size(1) / request.data;
  for (std::int64_t step = 0; step < tokens.size(0); ++step) {
    std::vector<MicroBatch> batches;
    for (std::int64_t index = 0; index < share; ++index) {
      const std::int64_t sequence = mesh.coordinates().data * share + index;
      batches.push_back(
          {tokens[step].narrow(0, sequence, 1), targets[step].narrow(0, sequence, 1), sequence});
    }
    result["losses"].push_back(trainer.step(batches).loss);
  }
  return result.dump();
}

}  // namespace

std::string ReferenceRequest::name() const {
  return fmt::format("{} {} tp{} pp{} dp{} z{}{}", model.filename().native(), specs::name_of(precision),
                     tensor, pipeline, data, zero_stage, sequence_parallel ? " sp" : "");
}

WorkerJobs reference_jobs() { return {{"reference", train_job}}; }

std::string to_text(const ReferenceRequest& request) {
  return json{{"model", request.model.native()},
              {"fp64", request.precision == specs::Precision::fp64},
              {"tensor", request.tensor},
              {"pipeline", request.pipeline},
              {"data", request.data},
              {"zero", request.zero_stage},
              {"sequence_parallel", request.sequence_parallel}}
      .dump();
}

ReferenceResult result_from(const std::string& text) {
  const json fields = json::parse(text);
  return {fields.at("losses").get<std::vector<double>>(), fields.at("logit_difference").get<double>()};
}

}  // namespace runtime
