#include "tests/numerics/training_outcome.h"

#include <chrono>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <optional>
#include <stdexcept>

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include "runtime/mesh/mesh.h"
#include "runtime/model/counter_random.h"
#include "runtime/train/trainer.h"

namespace runtime::numerics {

namespace {

class Writer {
 public:
  void number(std::int64_t value) { raw(&value, sizeof value); }
  void real(double value) { raw(&value, sizeof value); }
  void text(const std::string& value) {
    number(static_cast<std::int64_t>(value.size()));
    raw(value.data(), value.size());
  }
  void numbers(const std::vector<std::int64_t>& values) {
    number(static_cast<std::int64_t>(values.size()));
    for (const std::int64_t value : values) number(value);
  }
  /// As fp64.
  void tensor(const at::Tensor& flat) {
    const at::Tensor wide = flat.to(at::kDouble).contiguous();
    number(wide.numel());
    raw(wide.const_data_ptr<double>(), static_cast<std::size_t>(wide.numel()) * sizeof(double));
  }
  std::string take() { return std::move(bytes_); }

 private:
  void raw(const void* data, std::size_t size) { bytes_.append(static_cast<const char*>(data), size); }
  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(const std::string& bytes) : bytes_(bytes) {}
  std::int64_t number() { return read<std::int64_t>(); }
  double real() { return read<double>(); }
  std::string text() {
    const auto size = static_cast<std::size_t>(number());
    std::string value = bytes_.substr(at_, size);
    at_ += size;
    return value;
  }
  std::vector<std::int64_t> numbers() {
    std::vector<std::int64_t> values(static_cast<std::size_t>(number()));
    for (std::int64_t& value : values) value = number();
    return values;
  }
  std::vector<double> reals() {
    std::vector<double> values(static_cast<std::size_t>(number()));
    for (double& value : values) value = real();
    return values;
  }

 private:
  template <class T>
  T read() {
    T value;
    if (at_ + sizeof value > bytes_.size()) throw std::runtime_error("a rank's answer is cut short");
    std::memcpy(&value, bytes_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  const std::string& bytes_;
  std::size_t at_ = 0;
};

/// Elements [begin, begin + values) of this rank's part of a parameter.
void write_piece(Writer& out, const Parameter& parameter, std::int64_t begin, const at::Tensor& values) {
  out.text(parameter.name());
  out.numbers(parameter.spec.global_shape);
  out.numbers(parameter.spec.box.offset);
  out.numbers(parameter.spec.box.extent);
  out.number(begin);
  out.tensor(values);
}

/// All that this rank holds of the gradients or of the parameters.
void write_pieces(Writer& out, Trainer& trainer, bool gradients) {
  struct Piece {
    const Parameter* parameter;
    std::int64_t begin;
    at::Tensor values;
  };
  std::vector<Piece> pieces;
  for (const Bucket& bucket : trainer.parameters().buckets()) {
    // Parameters are compared wherever they stand whole, gradients where the reduction leaves them whole.
    const bool whole = !gradients && bucket.values.defined();
    const BucketRange held = whole ? BucketRange{0, bucket.numel} : bucket.shard;
    const at::Tensor& flat = gradients ? bucket.gradient_shard : whole ? bucket.values : bucket.value_shard;
    for (const ParameterBlock* block : bucket.blocks)
      for (const Parameter& parameter : block->parameters()) {
        const BucketRange part = overlap(parameter, held);
        if (part.size() > 0)
          pieces.push_back({&parameter, part.begin,
                            flat.narrow(0, parameter.bucket_offset + part.begin - held.begin, part.size())});
      }
  }
  out.number(static_cast<std::int64_t>(pieces.size()));
  for (const Piece& piece : pieces) write_piece(out, *piece.parameter, piece.begin, piece.values);
}

void write_traffic(Writer& out, const Traffic& traffic, Trainer& trainer) {
  out.number(static_cast<std::int64_t>(traffic.counts().size()));
  for (const auto& [key, count] : traffic.counts()) {
    out.text(key.group);
    out.number(static_cast<std::int64_t>(key.op));
    out.number(static_cast<std::int64_t>(key.dtype));
    out.real(count.wire_bytes);
  }
  const std::vector<Bucket>& buckets = trainer.parameters().buckets();
  out.number(static_cast<std::int64_t>(buckets.size()));
  for (const Bucket& bucket : buckets) {
    out.number(bucket.unit.unit);
    out.number(bucket.numel);
  }
  std::int64_t parameter_elements = 0;
  for (const Parameter* parameter : trainer.parameters().parameters())
    parameter_elements += parameter->numel();
  out.number(parameter_elements);
  out.number(static_cast<std::int64_t>(trainer.parameters().blocks().size()));
}

void write_work(Writer& out, Trainer& trainer) {
  std::vector<UnitPasses> passes;
  for (const auto& stage : trainer.stages())
    for (const UnitPasses& unit : stage->passes()) passes.push_back(unit);
  out.number(static_cast<std::int64_t>(passes.size()));
  for (const UnitPasses& unit : passes) {
    out.number(unit.unit);
    out.number(unit.whole);
    out.number(unit.attention_core);
  }
  out.number(static_cast<std::int64_t>(trainer.parameters().buckets().size()));
  out.number(trainer.reducer().peak_whole_buckets());
  out.number(trainer.gatherer() != nullptr ? trainer.gatherer()->peak_gathered() : 0);
}

RankWork read_work(Reader& in) {
  RankWork work;
  work.passes.resize(static_cast<std::size_t>(in.number()));
  for (UnitPasses& unit : work.passes) {
    unit.unit = in.number();
    unit.whole = in.number();
    unit.attention_core = in.number();
  }
  work.buckets = in.number();
  work.peak_whole_buckets = in.number();
  work.peak_gathered_units = in.number();
  return work;
}

RankTraffic read_traffic(Reader& in) {
  RankTraffic traffic;
  for (std::int64_t left = in.number(); left > 0; --left) {
    TrafficKey key{in.text()};
    key.op = static_cast<CommunicationOp>(in.number());
    key.dtype = static_cast<c10::ScalarType>(in.number());
    traffic.wire_bytes[key] = in.real();
  }
  traffic.buckets.resize(static_cast<std::size_t>(in.number()));
  for (CountedBucket& bucket : traffic.buckets) {
    bucket.unit = in.number();
    bucket.elements = in.number();
  }
  traffic.parameter_elements = in.number();
  traffic.blocks = in.number();
  return traffic;
}

/// Has no target: alone in a micro-batch it must count for nothing.
constexpr std::uint64_t masked_sequence = 10;

/// The sequences of this rank's replica: random tokens, some targets masked, unevenly over the sequences, of
/// one all. The same global batch for every placement.
std::vector<MicroBatch> batches_of(const TrainingCase& training, std::int64_t step, std::int64_t data_rank) {
  const std::int64_t length = training.sequence_length;
  const std::int64_t micro_batch = training.micro_batch();
  std::vector<MicroBatch> batches;
  for (std::int64_t index = 0; index < training.micro_batches; ++index) {
    MicroBatch batch;
    batch.tokens = at::empty({micro_batch, length}, at::kLong);
    batch.targets = at::empty({micro_batch, length}, at::kLong);
    batch.first_sequence = (data_rank * training.micro_batches + index) * micro_batch;
    for (std::int64_t row = 0; row < micro_batch; ++row)
      for (std::int64_t position = 0; position < length; ++position) {
        const auto sequence = static_cast<std::uint64_t>(batch.first_sequence + row);
        const RandomBlock bits =
            philox(7, static_cast<std::uint64_t>(step), sequence * 64 + static_cast<std::uint64_t>(position));
        const std::int64_t at = row * length + position;
        const std::int64_t token = bits[0] % TrainingCase::vocabulary;
        const std::int64_t drawn = bits[1] % TrainingCase::vocabulary;
        const std::int64_t target = training.learnable ? (5 * token + 3) % TrainingCase::vocabulary : drawn;
        const bool masked = sequence == masked_sequence || bits[2] % 32 < sequence;
        batch.tokens.data_ptr<std::int64_t>()[at] = token;
        batch.targets.data_ptr<std::int64_t>()[at] = masked ? std::int64_t{-100} : target;
      }
    batches.push_back(std::move(batch));
  }
  return batches;
}

std::string train_job(WorkerContext& context, const std::string& request) {
  const TrainingCase training = case_from_bytes(request);
  TrainerSpec spec{model_of(training), training_of(training), placement_of(training), schedule_of(training)};
  if (const auto refusals = training_refusals(spec); !refusals.empty())
    throw std::runtime_error(refusals.front());
  const Mesh mesh(spec.placement, context.groups);
  std::int64_t spoiling = 0;
  TrainerOptions options{training.overlap_reduction, training.faults, {}, training.debug_synchronise};
  options.on_gradients = [&](Trainer& spoiled) {
    const bool spoils = mesh.rank() == training.spoiled_rank && (training.spoiled_steps >> spoiling & 1) != 0;
    ++spoiling;
    if (!spoils) return;
    for (const StatePart& part : spoiled.optimizer().parts())
      part.device_gradient.fill_(std::numeric_limits<double>::infinity());
  };
  Trainer trainer(std::move(spec), mesh, std::move(options));
  context.groups.traffic().reset();
  Writer out;
  out.number(training.steps);
  for (std::int64_t step = 0; step < training.steps; ++step) {
    const StepResult result = trainer.step(batches_of(training, step, mesh.coordinates().data));
    out.real(result.loss);
    out.real(result.gradient_norm);
    out.real(result.learning_rate);
    out.real(result.loss_scale);
    if (step == 0) write_pieces(out, trainer, true);
  }
  write_pieces(out, trainer, false);
  write_traffic(out, context.groups.traffic(), trainer);
  write_work(out, trainer);
  return out.take();
}

/// Puts the pieces of all ranks into full tensors.
class Assembly {
 public:
  Assembly(Tensors& tensors, Givers& givers, std::vector<std::string>& defects)
      : tensors_(tensors), givers_(givers), defects_(defects) {}

  void read_pieces(Reader& in, std::int64_t rank) {
    for (std::int64_t left = in.number(); left > 0; --left) {
      const std::string name = in.text();
      const std::vector<std::int64_t> shape = in.numbers();
      const std::vector<std::int64_t> offset = in.numbers();
      const std::vector<std::int64_t> extent = in.numbers();
      const std::int64_t begin = in.number();
      place(rank, name, shape, offset, extent, begin, in.reals());
    }
  }

  void check_complete() {
    for (const auto& [name, values] : tensors_)
      for (const double value : values)
        if (std::isnan(value)) {
          defects_.push_back(name + " has elements that no rank gave, or that are not numbers");
          break;
        }
  }

 private:
  void place(std::int64_t rank, const std::string& name, const std::vector<std::int64_t>& shape,
             const std::vector<std::int64_t>& offset, const std::vector<std::int64_t>& extent,
             std::int64_t begin, const std::vector<double>& values) {
    const std::int64_t columns = shape.size() == 2 ? shape[1] : 1;
    const std::int64_t width = extent.size() == 2 ? extent[1] : 1;
    const std::int64_t first_column = offset.size() == 2 ? offset[1] : 0;
    std::vector<double>& full = tensors_[name];
    std::map<std::size_t, std::int64_t>& givers = givers_[name];
    full.resize(static_cast<std::size_t>(shape[0] * columns), std::numeric_limits<double>::quiet_NaN());
    std::size_t expected = full.size();
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::int64_t local = begin + static_cast<std::int64_t>(i);
      const std::int64_t global = (offset[0] + local / width) * columns + first_column + local % width;
      const auto element = static_cast<std::size_t>(global);
      double& target = full[element];
      if (!std::isnan(target)) {
        if (target == values[i]) continue;
        const std::int64_t other = std::prev(givers.upper_bound(element))->second;
        defects_.push_back(fmt::format("copies of {}[{}] differ: {} on rank {} and {} on rank {}", name,
                                       global, target, other, values[i], rank));
        return;
      }
      target = values[i];
      if (element != expected) givers[element] = rank;
      expected = element + 1;
    }
  }

  Tensors& tensors_;
  Givers& givers_;
  std::vector<std::string>& defects_;
};

}  // namespace

WorkerJobs training_jobs() { return {{"train", train_job}}; }

TrainingOutcome train(WorkerPool& pool, const TrainingCase& training) {
  TrainingOutcome outcome;
  Assembly gradients(outcome.gradients, outcome.gradient_givers, outcome.defects);
  Assembly weights(outcome.weights, outcome.weight_givers, outcome.defects);
  std::int64_t rank = 0;
  // Eight ranks may share two cores with other tests.
  const std::chrono::seconds limit(100 + 5 * training.steps);
  for (const WorkerResult& result : pool.run("train", to_bytes(training), training.ranks(), limit)) {
    if (!result.ok())
      throw std::runtime_error(fmt::format("{}: rank {}: {}", training.name(), rank, result.error));
    Reader in(result.value);
    const std::int64_t steps = in.number();
    for (std::int64_t step = 0; step < steps; ++step) {
      const double loss = in.real();
      const double norm = in.real();
      const double rate = in.real();
      const double scale = in.real();
      if (rank == 0) {
        outcome.losses.push_back(loss);
        outcome.gradient_norms.push_back(norm);
        outcome.learning_rates.push_back(rate);
        outcome.loss_scales.push_back(scale);
      } else if (outcome.losses[static_cast<std::size_t>(step)] != loss ||
                 outcome.gradient_norms[static_cast<std::size_t>(step)] != norm ||
                 outcome.learning_rates[static_cast<std::size_t>(step)] != rate ||
                 outcome.loss_scales[static_cast<std::size_t>(step)] != scale) {
        outcome.defects.push_back(
            fmt::format("rank {} reports other figures than rank 0 in step {}", rank, step));
      }
      if (step == 0) gradients.read_pieces(in, rank);
    }
    weights.read_pieces(in, rank);
    outcome.traffic.push_back(read_traffic(in));
    for (std::string& defect : traffic_defects(training, rank, outcome.traffic.back()))
      outcome.count_defects.push_back(std::move(defect));
    for (std::string& defect : work_defects(training, rank, read_work(in)))
      outcome.count_defects.push_back(std::move(defect));
    ++rank;
  }
  gradients.check_complete();
  weights.check_complete();
  return outcome;
}

}  // namespace runtime::numerics
