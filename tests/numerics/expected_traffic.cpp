#include "tests/numerics/expected_traffic.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "specs/plan/rank_mapping.h"

namespace runtime::numerics {

namespace {

using specs::MeshAxis;

constexpr std::int64_t alignment = 16;  ///< elements, of blocks and of each replica's shard of a bucket

c10::ScalarType scalar_type(specs::Precision precision) {
  switch (precision) {
    case specs::Precision::fp64:
      return c10::ScalarType::Double;
    case specs::Precision::fp32:
      return c10::ScalarType::Float;
    case specs::Precision::fp16:
      return c10::ScalarType::Half;
    default:
      return c10::ScalarType::BFloat16;
  }
}

/// Units of the rank that a closed form tells apart.
struct HeldUnits {
  std::int64_t attentions = 0;
  std::int64_t feed_forwards = 0;
  std::int64_t recomputed = 0;  ///< of both kinds
  bool embedding = false;
  bool output = false;
  std::int64_t halves() const { return attentions + feed_forwards; }
};

class ExpectedTraffic {
 public:
  ExpectedTraffic(const TrainingCase& training, std::int64_t rank, const RankTraffic& counted)
      : training_(training),
        model_(model_of(training)),
        placement_(placement_of(training)),
        rank_(rank),
        counted_(counted),
        type_(scalar_type(training.precision)),
        gradient_type_(
            training.precision == specs::Precision::fp64 ? type_ : scalar_type(training.gradient_precision)) {
    pipeline_rank_ = *specs::pipeline_rank_of(placement_, rank);
    for (const specs::PipelineStage& stage : placement_.stages)
      if (stage.pipeline_rank == pipeline_rank_) hold(stage);
  }

  std::map<TrafficKey, double> of_one_step() {
    if (training_.tensor > 1) {
      for (std::int64_t i = 0; i < training_.micro_batches; ++i) add_tensor_axis();
      add_partial_gradients();
    }
    add_boundaries();
    add_replicas();
    if (training_.ranks() > 1) add("world", CommunicationOp::all_reduce, c10::ScalarType::Double, 2);
    if (training_.data > 1) add("data", CommunicationOp::all_reduce, c10::ScalarType::Long, 1);
    return std::move(bytes_);
  }

 private:
  void hold(const specs::PipelineStage& stage) {
    const std::int64_t layers = model_.layers;
    held_.embedding |= stage.units.contains(specs::embedding_unit());
    held_.output |= stage.units.contains(specs::output_unit(layers));
    std::int64_t touched = 0;
    for (std::int64_t layer = 0; layer < layers; ++layer) {
      const std::int64_t attention = stage.units.contains(specs::attention_unit(layer)) ? 1 : 0;
      const std::int64_t feed_forward = stage.units.contains(specs::feed_forward_unit(layer)) ? 1 : 0;
      if (attention + feed_forward == 0) continue;
      held_.attentions += attention;
      held_.feed_forwards += feed_forward;
      if (specs::recomputation_of(stage, touched++) == specs::Recomputation::full)
        held_.recomputed += attention + feed_forward;
    }
  }

  std::int64_t group_size(const std::string& group) const {
    if (group == "tensor") return training_.tensor;
    if (group == "gradient" || group == "data") return training_.data;
    if (group == "shard") return shard_ranks();
    if (group == "replica") return training_.data / shard_ranks();
    if (group == "embedding") return 2;
    if (group == "pipeline") return training_.pipeline;
    return training_.ranks();
  }

  void add(const std::string& group, CommunicationOp op, c10::ScalarType type, std::int64_t elements) {
    if (elements == 0) return;
    const auto n = static_cast<double>(group_size(group));
    double factor = 0;
    if (op == CommunicationOp::all_reduce) factor = 2 * (n - 1) / n;
    if (op == CommunicationOp::all_gather || op == CommunicationOp::reduce_scatter) factor = (n - 1) / n;
    if (op == CommunicationOp::send) factor = 1;
    const auto payload = static_cast<double>(elements) * static_cast<double>(c10::elementSize(type));
    bytes_[{group, op, type}] += factor * payload;
  }
  std::int64_t shard_ranks() const {
    if (training_.zero.stage == 0) return 1;
    return training_.zero.shard_ranks > 0 ? training_.zero.shard_ranks : training_.data;
  }
  /// Times that the gradients travel in a step.
  std::int64_t reductions() const { return training_.zero.stage >= 2 ? training_.micro_batches : 1; }

  void add_tensor(CommunicationOp op, std::int64_t times) {
    add("tensor", op, type_, times * tokens() * model_.hidden);
  }

  std::int64_t tokens() const { return training_.micro_batch() * training_.sequence_length; }

  /// Of one micro-batch.
  void add_tensor_axis() {
    const std::int64_t halves = held_.halves();
    const bool token_parallel = training_.output_mode == specs::OutputLayerMode::token_parallel;
    const bool sliced_embedding = held_.embedding && !(token_parallel && training_.tied);
    const bool sliced_output = held_.output && !token_parallel;
    if (training_.sequence_parallel) {
      add_tensor(CommunicationOp::all_gather,
                 3 * halves + held_.recomputed + sliced_embedding + 2 * sliced_output);
      add_tensor(CommunicationOp::reduce_scatter,
                 2 * halves + held_.recomputed + sliced_embedding + sliced_output);
    } else {
      add_tensor(CommunicationOp::all_reduce,
                 2 * halves + held_.recomputed + sliced_embedding + sliced_output);
      if (held_.output && token_parallel) add_tensor(CommunicationOp::all_gather, 1);
    }
    if (!held_.output) return;
    const bool wide = training_.precision == specs::Precision::fp64;
    const c10::ScalarType statistics = wide ? c10::ScalarType::Double : c10::ScalarType::Float;
    if (token_parallel)
      add("tensor", CommunicationOp::all_reduce, c10::ScalarType::Double, 1);
    else
      add("tensor", CommunicationOp::all_reduce, statistics, 3 * tokens());
  }

  /// Parameters that the ranks of the tensor axis hold alike and see a part of the gradient of.
  void add_partial_gradients() {
    const specs::AttentionSpec& attention = model_.attention;
    std::int64_t elements = 0;
    if (attention.kv_heads < training_.tensor) {
      const std::int64_t width = attention.kv_heads * attention.head_dim;
      elements += held_.attentions * 2 * width * (model_.hidden + (attention.qkv_bias ? 1 : 0));
    }
    if (training_.sequence_parallel) {
      const std::int64_t norm = model_.norm_bias ? 2 : 1;
      elements += held_.halves() * norm * model_.hidden;
      if (attention.output_bias) elements += held_.attentions * model_.hidden;
      if (model_.feed_forward.bias) elements += held_.feed_forwards * model_.hidden;
      if (held_.output) elements += norm * model_.hidden;
      if (held_.embedding && model_.position_encoding == specs::PositionEncoding::learned)
        elements += model_.positions * model_.hidden;
    }
    if (training_.output_mode == specs::OutputLayerMode::token_parallel) {
      const bool holds = held_.output || (held_.embedding && training_.tied);
      if (holds) elements += table_rows(1) * model_.hidden;
    }
    add("tensor", CommunicationOp::all_reduce, gradient_type_, elements * reductions());
  }

  /// Rows of the table on a rank, cut in `parts`.
  std::int64_t table_rows(std::int64_t parts) const {
    const std::int64_t unit = model_.vocabulary_multiple * parts;
    return (model_.vocabulary + unit - 1) / unit * unit / parts;
  }

  void add_boundaries() {
    const std::int64_t rows = training_.sequence_parallel ? tokens() / training_.tensor : tokens();
    std::int64_t sends = 0;
    const auto& stages = placement_.stages;
    for (std::size_t stage = 0; stage + 1 < stages.size(); ++stage) {
      const std::int64_t before = stages[stage].pipeline_rank;
      const std::int64_t after = stages[stage + 1].pipeline_rank;
      if (before == after) continue;
      sends += before == pipeline_rank_ ? 1 : 0;  // the activation
      sends += after == pipeline_rank_ ? 1 : 0;   // its gradient
    }
    add("pipeline", CommunicationOp::send, type_, training_.micro_batches * sends * rows * model_.hidden);
  }

  void add_replicas() {
    const std::int64_t first = placement_.stages.front().pipeline_rank;
    const std::int64_t last = placement_.stages.back().pipeline_rank;
    if (training_.tied && first != last && (held_.embedding || held_.output)) {
      const bool whole = training_.output_mode == specs::OutputLayerMode::token_parallel;
      const std::int64_t unit = alignment * shard_ranks();
      const std::int64_t table = table_rows(whole ? 1 : training_.tensor) * model_.hidden;
      add("embedding", CommunicationOp::all_reduce, gradient_type_, (table + unit - 1) / unit * unit);
    }
    if (training_.data == 1) return;
    if (training_.zero.stage == 0) {
      add("gradient", CommunicationOp::all_reduce, gradient_type_, counted_.bucket_elements());
      return;
    }
    add("shard", CommunicationOp::reduce_scatter, gradient_type_, counted_.bucket_elements() * reductions());
    for (const CountedBucket& bucket : counted_.buckets)
      add("shard", CommunicationOp::all_gather, type_, bucket.elements * gathers_of(bucket.unit));
    if (shard_ranks() < training_.data)
      add("replica", CommunicationOp::all_reduce, gradient_type_, counted_.bucket_elements() / shard_ranks());
  }

  /// Times that a unit's parameters are gathered in a step.
  std::int64_t gathers_of(std::int64_t unit) const {
    if (training_.zero.stage < 3) return 1;
    const std::int64_t output = 1 + model_.layers;
    // Counted from the output layer back.
    const auto keeps = [&](std::int64_t place) { return output - place < training_.zero.kept_units ? 1 : 0; };
    std::int64_t times = 2 - keeps(unit);
    if (unit == 0) times = training_.tied ? 3 - keeps(output) - keeps(0) : 1;
    const bool is_layer = unit > 0 && unit < output;
    if (is_layer && training_.recomputation == specs::Recomputation::full &&
        training_.recomputed_layers == RecomputedLayers::in_pairs && unit % 2 == 1 && unit < model_.layers)
      ++times;
    return times * training_.micro_batches;
  }

  const TrainingCase& training_;
  specs::ModelSpec model_;
  specs::Placement placement_;
  std::int64_t rank_;
  const RankTraffic& counted_;
  c10::ScalarType type_;
  c10::ScalarType gradient_type_;
  std::int64_t pipeline_rank_ = 0;
  HeldUnits held_;
  std::map<TrafficKey, double> bytes_;
};

std::string describe(const TrafficKey& key) {
  return fmt::format("{} {} of {}", key.group, specs::name_of(key.op), c10::toString(key.dtype));
}

}  // namespace

std::int64_t RankTraffic::bucket_elements() const {
  std::int64_t sum = 0;
  for (const CountedBucket& bucket : buckets) sum += bucket.elements;
  return sum;
}

std::map<TrafficKey, double> expected_traffic(const TrainingCase& training, std::int64_t rank,
                                              const RankTraffic& counted) {
  return ExpectedTraffic(training, rank, counted).of_one_step();
}

std::vector<std::string> traffic_defects(const TrainingCase& training, std::int64_t rank,
                                         const RankTraffic& counted) {
  std::vector<std::string> defects;
  const std::int64_t padding = counted.bucket_elements() - counted.parameter_elements;
  const auto buckets = static_cast<std::int64_t>(counted.buckets.size());
  const std::int64_t most = alignment * (counted.blocks + buckets * training.data);
  if (padding < 0 || padding > most)
    defects.push_back(
        fmt::format("rank {} pads its buckets with {} elements, at most {} are needed", rank, padding, most));
  std::map<TrafficKey, double> expected = expected_traffic(training, rank, counted);
  const auto steps = static_cast<double>(training.steps);
  std::set<TrafficKey> keys;
  for (const auto& [key, bytes] : expected) keys.insert(key);
  for (const auto& [key, bytes] : counted.wire_bytes)
    if (bytes > 0) keys.insert(key);
  for (const TrafficKey& key : keys) {
    const double wanted = expected[key];
    const auto found = counted.wire_bytes.find(key);
    const double seen = found == counted.wire_bytes.end() ? 0 : found->second / steps;
    if (std::abs(seen - wanted) > 1e-9 * std::max(seen, wanted))
      defects.push_back(
          fmt::format("rank {}: {}: {} bytes a step, expected {}", rank, describe(key), seen, wanted));
  }
  return defects;
}

}  // namespace runtime::numerics
