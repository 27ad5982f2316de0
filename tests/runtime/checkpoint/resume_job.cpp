#include "tests/runtime/checkpoint/resume_job.h"

#include <cstring>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/checkpoint/trainer_checkpoint.h"
#include "runtime/data/check_batches.h"
#include "runtime/evaluation/held_back_loss.h"

namespace runtime {

namespace {

using nlohmann::json;
using numerics::TrainingCase;

std::string to_text(const ResumeRequest& request) {
  std::vector<std::string> checkpoints, data;
  for (const auto& path : request.checkpoints) checkpoints.push_back(path.native());
  for (const auto& path : request.data) data.push_back(path.native());
  const std::string training = to_bytes(request.training);
  const json document{{"training", json::binary({training.begin(), training.end()})},
                      {"data", data},
                      {"checkpoints", checkpoints},
                      {"resume", request.resume},
                      {"steps", request.steps},
                      {"save_at", request.save_at},
                      {"reads_alike", request.reads_alike}};
  const std::vector<std::uint8_t> bytes = json::to_msgpack(document);
  return {bytes.begin(), bytes.end()};
}

json pieces_of(Trainer& trainer) {
  json pieces = json::array();
  for (const TensorPiece& piece : tensor_pieces(trainer.optimizer())) {
    const auto* bytes = static_cast<const std::uint8_t*>(piece.data.const_data_ptr());
    pieces.push_back({{"name", piece.name},
                      {"shape", piece.global_shape},
                      {"offset", piece.region.box.offset},
                      {"extent", piece.region.box.extent},
                      {"begin", piece.region.begin},
                      {"end", piece.region.end},
                      {"element", piece.data.element_size()},
                      {"bytes", json::binary({bytes, bytes + piece.data.nbytes()})}});
  }
  return pieces;
}

std::string tokens_of(const std::vector<MicroBatch>& batches) {
  std::string text;
  for (const MicroBatch& batch : batches) {
    const at::Tensor tokens = batch.tokens.contiguous();
    for (std::int64_t i = 0; i < tokens.numel(); ++i)
      text += fmt::format("{} ", tokens.const_data_ptr<std::int64_t>()[i]);
  }
  return text;
}

std::string train(WorkerContext& context, const std::string& text) {
  const json request = json::from_msgpack(text);
  const auto& bytes = request.at("training").get_binary();
  const TrainingCase training = numerics::case_from_bytes({bytes.begin(), bytes.end()});
  const std::string checkpoints = request.at("checkpoints").at(static_cast<std::size_t>(context.rank));
  const specs::Placement placement = placement_of(training);
  const Mesh mesh(placement, context.groups);
  specs::TrainingSpec spec = training_of(training);
  spec.data.held_back_fraction = 0.2;
  spec.data.evaluation_batches = 2;
  Trainer trainer({model_of(training), spec, placement, schedule_of(training)}, mesh);
  const auto data =
      open_data(request.at("data").at(static_cast<std::size_t>(context.rank)).get<std::string>(), spec, 256);
  if (!data) throw std::runtime_error(data.diagnostics.render());
  const std::int64_t replica = request.at("reads_alike").get<bool>() ? 0 : mesh.coordinates().data;
  const BatchLoader loader(*data, spec, placement, replica);

  json outcome{{"first_step", 1},
               {"losses", json::array()},
               {"learning_rates", json::array()},
               {"loss_scales", json::array()},
               {"samples", json::array()},
               {"passed_over", json::array()}};
  std::int64_t done = 0;
  if (request.at("resume").get<bool>()) {
    const auto loaded = resume_trainer(checkpoints, trainer);
    if (!loaded) throw std::runtime_error("there is no checkpoint");
    done = loaded->state.step;
    outcome["passed_over"] = loaded->passed_over;
  }
  outcome["first_step"] = done + 1;
  outcome["at_start"] = pieces_of(trainer);
  check_batches(loader, done * spec.global_batch, mesh.coordinates().data, mesh.world());
  while (done < request.at("steps").get<std::int64_t>()) {
    std::vector<MicroBatch> batch;
    for (std::int64_t m = 0; m < loader.micro_batches(); ++m)
      batch.push_back(loader.training(done * spec.global_batch, m));
    const StepResult result = trainer.step(batch);
    outcome["losses"].push_back(result.loss);
    outcome["learning_rates"].push_back(result.learning_rate);
    outcome["loss_scales"].push_back(result.loss_scale);
    outcome["samples"].push_back(tokens_of(batch));
    ++done;
    if (done == request.at("save_at").get<std::int64_t>())
      save_trainer(checkpoints, trainer, {done, done * spec.global_batch, "hash"});
  }
  outcome["held_back_loss"] = held_back_loss(trainer, loader);
  outcome["at_end"] = pieces_of(trainer);
  const std::vector<std::uint8_t> packed = json::to_msgpack(outcome);
  return {packed.begin(), packed.end()};
}

/// Adds one rank's pieces to the whole; `seen` tells which elements are filled.
void add(const json& pieces, WholeTensors& whole, WholeTensors& seen, std::vector<std::string>& defects) {
  for (const json& piece : pieces) {
    const std::string name = piece.at("name");
    const auto shape = piece.at("shape").get<std::vector<std::int64_t>>();
    const auto offset = piece.at("offset").get<std::vector<std::int64_t>>();
    const auto extent = piece.at("extent").get<std::vector<std::int64_t>>();
    const std::int64_t columns = shape.back(), width = extent.back();
    const std::int64_t rows = shape.size() == 2 ? shape[0] : 1;
    const std::int64_t first_row = shape.size() == 2 ? offset[0] : 0;
    const auto element = piece.at("element").get<std::size_t>();
    std::string& bytes = whole[name];
    std::string& filled = seen[name];
    bytes.resize(static_cast<std::size_t>(rows * columns) * element);
    filled.resize(static_cast<std::size_t>(rows * columns), 0);
    const auto& from = piece.at("bytes").get_binary();
    const auto begin = piece.at("begin").get<std::int64_t>();
    for (std::int64_t i = begin; i < piece.at("end").get<std::int64_t>(); ++i) {
      const auto at = static_cast<std::size_t>((first_row + i / width) * columns + offset.back() + i % width);
      const auto* value =
          reinterpret_cast<const char*>(from.data()) + static_cast<std::size_t>(i - begin) * element;
      if (filled[at] != 0 && std::memcmp(&bytes[at * element], value, element) != 0)
        defects.push_back(fmt::format("{}[{}] differs between two ranks", name, at));
      std::memcpy(&bytes[at * element], value, element);
      filled[at] = 1;
    }
  }
}

}  // namespace

WorkerJobs resume_jobs() { return {{"train", train}}; }

ResumeOutcome run(WorkerPool& pool, const ResumeRequest& request) {
  ResumeOutcome outcome;
  WholeTensors start_seen, end_seen;
  for (const WorkerResult& result : pool.run("train", to_text(request), request.training.ranks())) {
    if (!result.ok()) {
      if (outcome.error.empty()) outcome.error = result.error;
      continue;
    }
    const json value = json::from_msgpack(result.value);
    value.at("first_step").get_to(outcome.first_step);
    value.at("losses").get_to(outcome.losses);
    value.at("learning_rates").get_to(outcome.learning_rates);
    value.at("loss_scales").get_to(outcome.loss_scales);
    if (outcome.samples.empty()) value.at("samples").get_to(outcome.samples);
    value.at("held_back_loss").get_to(outcome.held_back_loss);
    value.at("passed_over").get_to(outcome.passed_over);
    add(value.at("at_start"), outcome.at_start, start_seen, outcome.defects);
    add(value.at("at_end"), outcome.at_end, end_seen, outcome.defects);
  }
  for (const auto& [name, filled] : end_seen)
    if (filled.find('\0') != std::string::npos) outcome.defects.push_back(name + " is not whole");
  return outcome;
}

}  // namespace runtime
