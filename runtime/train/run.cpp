#include "runtime/train/run.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/checkpoint/checkpoint_error.h"
#include "runtime/checkpoint/pretrained_weights.h"
#include "runtime/checkpoint/trainer_checkpoint.h"
#include "runtime/comm/communication_error.h"
#include "runtime/comm/process_groups.h"
#include "runtime/data/batch_loader.h"
#include "runtime/data/check_batches.h"
#include "runtime/data/training_data.h"
#include "runtime/evaluation/held_back_loss.h"
#include "runtime/launch/rank_session.h"
#include "runtime/launch/run_error.h"
#include "runtime/mesh/mesh.h"
#include "runtime/monitor/metrics.h"
#include "runtime/monitor/rank_log.h"
#include "runtime/monitor/tensor_memory.h"
#include "runtime/train/non_finite.h"
#include "runtime/train/run_data.h"
#include "runtime/train/run_directory.h"
#include "runtime/train/run_summary.h"
#include "runtime/train/step_statistics.h"
#include "runtime/train/trainer.h"

namespace runtime {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Steps whose times are not typical: allocators, threads and connections warm up.
constexpr std::size_t warm_up_steps = 2;
constexpr std::int64_t progress_lines = 20;
/// From the first rank that waited too long to the last: the groups of a broken one end with it.
constexpr std::chrono::milliseconds time_to_give_up{500};

/// For a message that is to follow `error: ` on a line.
std::string text_of(const specs::Diagnostics& diagnostics) {
  std::vector<std::string> lines;
  for (const specs::Diagnostic& entry : diagnostics.entries()) {
    std::string line =
        entry.position.file.empty() ? entry.message : entry.position.file + ": " + entry.message;
    if (!entry.remedy.empty()) line += "; " + entry.remedy;
    lines.push_back(std::move(line));
  }
  return fmt::format("{}", fmt::join(lines, "\n"));
}

/// Meets the other ranks once the run folder is there; the ranks of a host may share it.
Rendezvous meet(const RunOptions& options, const RankIdentity& identity, RunDirectoryLock& lock) {
  if (identity.local_rank == 0) {
    // Our own launcher has the folder already; hosts may share one.
    const bool locks = identity.launcher != Launcher::local && identity.rank == 0;
    const specs::Diagnostics folder =
        prepare_run_directory(options.run_directory, options.directory_use, locks ? &lock : nullptr);
    if (folder.has_errors()) throw RunError(exit_bad_input, text_of(folder));
  }
  Rendezvous rendezvous = join(identity, options.timeout);
  wait_for_all(rendezvous, "folders", identity, options.timeout);
  return rendezvous;
}

class TrainingRun {
 public:
  TrainingRun(const RunOptions& options, const RankIdentity& identity)
      : options_(options),
        identity_(identity),
        rendezvous_(meet(options, identity, lock_)),
        log_(options.run_directory, identity.rank, options.log_level),
        groups_(rendezvous_, identity.rank, {.timeout = options.timeout}) {}

  void run() {
    log_.info(fmt::format("rank {} of {} started by {}", identity_.rank, identity_.world_size,
                          specs::name_of(identity_.launcher)));
    check_same_plan();
    say(fmt::format("run     {} on {} rank{}, steps to {}\n", options_.plan.inputs.name, identity_.world_size,
                    identity_.world_size == 1 ? "" : "s", total_steps()));
    mesh_ = std::make_unique<Mesh>(options_.plan.placement, groups_);
    metrics_group_ = std::make_unique<Communicator>(groups_.communicator("metrics", mesh_->world().ranks()));
    log_mesh();
    if (!options_.directory_use.dry_run) open_data();
    build_trainer();
    if (options_.directory_use.dry_run) {
      say(fmt::format("dry run: {} ranks are connected and hold the model; nothing was trained\n",
                      identity_.world_size));
    } else {
      begin();
      train();
      evaluate();
      finish();
    }
    // The host of the store is not to leave while others need it.
    wait_for_all(rendezvous_, "done", identity_, options_.timeout);
    log_.info("done");
  }

  RankLog& log() { return log_; }

  /// Which ranks to look at, where a collective timed out; empty where all have given up on it too.
  std::string suspects(const CommunicationError& error) const {
    if (error.failure() == CommunicationFailure::other) return {};
    const std::vector<std::int64_t> silent = silent_ranks(rendezvous_, identity_, time_to_give_up);
    if (error.failure() != CommunicationFailure::timeout || silent.empty()) return {};
    return fmt::format("; still silent: rank{} {}", silent.size() == 1 ? "" : "s", fmt::join(silent, ", "));
  }

 private:
  bool speaks() const { return identity_.rank == 0; }
  void say(const std::string& text) const {
    if (!speaks()) return;
    fmt::print("{}", text);
    std::fflush(stdout);
  }
  const specs::TrainingSpec& training() const { return options_.plan.inputs.training; }
  std::int64_t total_steps() const { return options_.steps.value_or(training().steps); }
  std::int64_t tokens_per_step() const { return training().global_batch * training().sequence_length; }

  void check_same_plan() {
    const std::string differs =
        compare_with_rank_zero(rendezvous_, identity_.rank, "plan", options_.plan_text, options_.timeout);
    if (!differs.empty()) throw RunError(exit_bad_input, "the plan of this rank is not the plan of rank 0");
    if (identity_.local_rank != 0) return;
    const std::filesystem::path copy = options_.run_directory / "plan.json";
    const std::filesystem::path temporary = copy.string() + ".tmp";
    std::ofstream(temporary) << options_.plan_text;
    std::error_code error;
    std::filesystem::rename(temporary, copy, error);
    if (error)
      throw RunError(exit_storage, fmt::format("cannot write {}: {}", copy.string(), error.message()));
  }

  void log_mesh() {
    for (const auto& [kind, name] : specs::EnumNames<MeshGroup>::names) {
      const Communicator& group = mesh_->group(kind);
      if (group.size() > 1) log_.info(fmt::format("group {}: ranks {}", name, fmt::join(group.ranks(), ",")));
    }
  }

  void open_data() {
    auto opened = open_run_data(options_);
    if (!opened.ok()) throw RunError(exit_bad_input, text_of(opened.diagnostics));
    data_ = std::make_unique<TrainingData>(std::move(opened->data));
    loader_ =
        std::make_unique<BatchLoader>(*data_, training(), options_.plan.placement, mesh_->coordinates().data);
    say(fmt::format("data    {}: {} tokens to train on, {} held back\n", opened->path.string(),
                    with_separators(data_->training.tokens()), with_separators(data_->held_back.tokens())));
  }

  void build_trainer() {
    TrainerSpec spec{options_.plan.inputs.model, training(), options_.plan.placement, options_.schedule};
    if (const std::vector<std::string> refusals = training_refusals(spec); !refusals.empty())
      throw RunError(exit_bad_input, fmt::format("{}", fmt::join(refusals, "\n")));
    trainer_ = std::make_unique<Trainer>(std::move(spec), *mesh_,
                                         TrainerOptions{.debug_synchronise = options_.debug_synchronise});
    log_.info(fmt::format("model built; {} tensor bytes", tensor_memory().current_bytes));
  }

  /// Sequences; the checkpoint that the run goes on from may have been written with another global batch.
  std::int64_t consumed_before(std::int64_t step) const {
    return consumed_at_start_ + (step - first_step_) * training().global_batch;
  }

  std::vector<MicroBatch> load_batch(std::int64_t step) {
    std::vector<MicroBatch> batch;
    for (std::int64_t micro_batch = 0; micro_batch < loader_->micro_batches(); ++micro_batch)
      batch.push_back(loader_->training(consumed_before(step), micro_batch));
    return batch;
  }

  void train() {
    if (speaks())
      metrics_file_ =
          std::make_unique<MetricsFile>(options_.run_directory / "metrics.jsonl", first_step_ - 1);
    peak_bytes_.assign(static_cast<std::size_t>(identity_.world_size), {});
    host_bytes_.assign(peak_bytes_.size(), 0);
    check_batches(*loader_, consumed_before(first_step_), mesh_->coordinates().data, mesh_->world());
    const std::int64_t every = training().checkpoint_every;
    for (std::int64_t step = first_step_; step <= total_steps(); ++step) {
      train_step(step);
      if (const std::int64_t evaluate_every = training().data.evaluate_every;
          evaluate_every > 0 && step % evaluate_every == 0 && step < total_steps()) {
        evaluate();
        say(fmt::format("step {:>6}/{}  held-back loss {:.4f}\n", step, total_steps(),
                        summary_.held_back_loss));
      }
      if (step == total_steps() || (every > 0 && step % every == 0)) save(step);
    }
  }

  std::filesystem::path checkpoints() const { return options_.run_directory / "checkpoints"; }

  /// The state before the first step of this run.
  void begin() {
    if (options_.directory_use.resume && resume()) return;
    if (!options_.initial_weights) return;
    try {
      load_pretrained_weights(*options_.initial_weights, *trainer_);
    } catch (const CheckpointError& error) {
      throw RunError(exit_bad_input, error.what());
    }
    say(fmt::format("weights {}\n", options_.initial_weights->string()));
  }

  /// False where there is nothing to resume from.
  bool resume() {
    const auto loaded = resume_trainer(checkpoints(), *trainer_);
    if (!loaded) {
      say("no checkpoint to resume from: beginning at step 1\n");
      return false;
    }
    for (const std::string& line : loaded->passed_over) {
      say("passed over " + line + "\n");
      log_.warning("passed over " + line);
    }
    first_step_ = loaded->state.step + 1;
    consumed_at_start_ = loaded->state.consumed_samples;
    summary_.checkpoint = loaded->folder;
    say(fmt::format("resumed from {}\n", loaded->folder.string()));
    return true;
  }

  void save(std::int64_t step) {
    const auto start = Clock::now();
    const SavedCheckpoint saved = save_trainer(checkpoints(), *trainer_,
                                               {.step = step,
                                                .consumed_samples = consumed_before(step + 1),
                                                .plan_hash = options_.plan.inputs_hash});
    summary_.checkpoint = saved.folder;
    log_.info(fmt::format("checkpoint {}: {} bytes in {:.3f} s", saved.folder.string(), saved.bytes,
                          seconds_since(start)));
  }

  void train_step(std::int64_t step) {
    const auto start = Clock::now();
    reset_peak_tensor_memory();
    const std::vector<MicroBatch> batch = load_batch(step);
    const double data_wait = seconds_since(start);
    const StepResult result = trainer_->step(batch);
    const double seconds = seconds_since(start);
    const TensorMemory memory = tensor_memory();
    if (!result.updated) check_skipped(step, batch, result);
    const std::vector<StepMeasurement> all =
        gather_measurements(*metrics_group_, {memory.peak_bytes, memory.host.peak_bytes, data_wait});
    step_seconds_.push_back(seconds);
    if (step == first_step_) summary_.first_loss = result.loss;
    summary_.last_loss = result.loss;
    record(step, result, seconds, all);
  }

  /// A step that changed nothing: fp16 goes on at a smaller loss scale while there is one, all else ends.
  void check_skipped(std::int64_t step, const std::vector<MicroBatch>& batch, const StepResult& result) {
    const std::string first = first_non_finite(*trainer_, batch, result);
    const std::string culprit = first.empty() ? "" : "; the first tensor that is not finite is " + first;
    log_.warning(fmt::format("step {}: skipped at loss scale {}{}", step, result.loss_scale, culprit));
    if (trainer_->loss_scaler().exhausted())
      throw RunError(
          exit_non_finite,
          fmt::format("step {}: gradients overflow at the smallest loss scale, {}{}; the weights are "
                      "those of the last step that did not",
                      step, result.loss_scale, culprit));
    if (training().precision == specs::Precision::fp16) return;
    throw RunError(exit_non_finite,
                   fmt::format("step {}: loss {} and gradient norm {} are not both finite{}; the "
                               "weights are those of step {}",
                               step, result.loss, result.gradient_norm, culprit, step - 1));
  }

  void record(std::int64_t step, const StepResult& result, double seconds,
              const std::vector<StepMeasurement>& all) {
    StepMetrics metrics;
    metrics.step = step;
    metrics.loss = result.loss;
    metrics.gradient_norm = result.gradient_norm;
    metrics.learning_rate = result.learning_rate;
    metrics.loss_scale = result.loss_scale;
    metrics.updated = result.updated;
    metrics.step_seconds = seconds;
    metrics.tokens_per_second = static_cast<double>(tokens_per_step()) / seconds;
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      metrics.data_wait_seconds = std::max(metrics.data_wait_seconds, all[rank].data_wait_seconds);
      metrics.peak_tensor_bytes.push_back(all[rank].peak_tensor_bytes);
      metrics.peak_host_bytes.push_back(all[rank].peak_host_bytes);
      host_bytes_[rank] = std::max(host_bytes_[rank], all[rank].peak_host_bytes);
      peak_bytes_[rank].push_back(static_cast<double>(all[rank].peak_tensor_bytes));
    }
    if (metrics_file_) metrics_file_->write(metrics);
    log_.debug(to_json_line(metrics));
    const std::int64_t every = std::max<std::int64_t>(1, total_steps() / progress_lines);
    if (step % every == 0 || step == first_step_ || step == total_steps())
      say(fmt::format("step {:>6}/{}  loss {:.4f}  gradient norm {:.3f}  {} tokens/s  {:.4f} s{}\n", step,
                      total_steps(), result.loss, result.gradient_norm,
                      with_separators(static_cast<std::int64_t>(metrics.tokens_per_second)), seconds,
                      result.updated ? "" : fmt::format("  skipped at loss scale {}", result.loss_scale)));
  }

  void evaluate() {
    summary_.evaluated = loader_->evaluation_sequences() > 0;
    summary_.held_back_loss = held_back_loss(*trainer_, *loader_);
    if (speaks()) summary_.held_back_entropy = data_->held_back_entropy();
  }

  void finish() {
    const specs::CostBreakdown& prediction = options_.plan.prediction;
    summary_.steps = total_steps();
    summary_.trained = !step_seconds_.empty();
    summary_.token = training().data.tokenizer == "byte" ? "byte" : "token";
    const std::size_t warm =
        std::min(warm_up_steps, step_seconds_.size() > warm_up_steps ? warm_up_steps : 0);
    summary_.step_seconds = median(
        std::vector<double>(step_seconds_.begin() + static_cast<std::ptrdiff_t>(warm), step_seconds_.end()));
    if (summary_.step_seconds > 0)
      summary_.tokens_per_second = static_cast<double>(tokens_per_step()) / summary_.step_seconds;
    summary_.predicted_step_seconds = prediction.step_seconds;
    summary_.memory.resize(static_cast<std::size_t>(mesh_->pipeline_ranks()));
    for (std::size_t rank = 0; rank < peak_bytes_.size(); ++rank) {
      const auto stage = static_cast<std::size_t>(
          coordinates_of(options_.plan.placement, static_cast<std::int64_t>(rank)).pipeline);
      PipelineRankMemory& memory = summary_.memory[stage];
      for (double peak : peak_bytes_[rank])
        memory.worst_bytes = std::max(memory.worst_bytes, static_cast<std::int64_t>(peak));
      memory.measured_bytes =
          std::max(memory.measured_bytes, static_cast<std::int64_t>(median(peak_bytes_[rank])));
      memory.predicted_bytes = prediction.device_bytes(static_cast<std::int64_t>(stage));
      memory.host_bytes = std::max(memory.host_bytes, host_bytes_[rank]);
      memory.predicted_host_bytes = predicted_host_bytes(static_cast<std::int64_t>(stage));
    }
    summary_.run_directory = options_.run_directory;
    say("\n" + render(summary_));
    log_.info("summary\n" + render(summary_));
  }

  std::int64_t predicted_host_bytes(std::int64_t pipeline_rank) const {
    std::int64_t bytes = 0;
    for (const specs::MemoryEntry& entry : options_.plan.prediction.memory)
      if (entry.pipeline_rank == pipeline_rank && (entry.location == specs::MemoryLocation::host ||
                                                   entry.location == specs::MemoryLocation::host_pinned))
        bytes += entry.bytes;
    return bytes;
  }

  const RunOptions& options_;
  RankIdentity identity_;
  RunDirectoryLock lock_;
  Rendezvous rendezvous_;
  RankLog log_;
  ProcessGroups groups_;
  std::unique_ptr<Mesh> mesh_;
  std::unique_ptr<Communicator> metrics_group_;
  std::unique_ptr<TrainingData> data_;
  std::unique_ptr<BatchLoader> loader_;
  std::unique_ptr<Trainer> trainer_;
  std::unique_ptr<MetricsFile> metrics_file_;
  std::int64_t first_step_ = 1;
  std::int64_t consumed_at_start_ = 0;
  std::vector<double> step_seconds_;
  std::vector<std::vector<double>> peak_bytes_;  ///< by rank, then by step
  std::vector<std::int64_t> host_bytes_;         ///< by rank
  RunSummary summary_;
};

}  // namespace

void run_rank(const RunOptions& options, const RankIdentity& identity) {
  install_counting_allocator();
  TrainingRun run(options, identity);
  try {
    run.run();
  } catch (const CommunicationError& error) {
    const RankFailure failure = failure_of(error);
    const std::string message = failure.message + run.suspects(error);
    run.log().error(message);
    if (failure.consequence) throw;
    throw RunError(static_cast<ExitCode>(failure.exit_code), message);
  } catch (const std::exception& error) {
    run.log().error(failure_of(error).message);
    throw;
  }
}

}  // namespace runtime
