#include "tests/numerics/placement_matrix.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "tests/numerics/covering_array.h"

namespace runtime::numerics {

namespace {

template <class Field>
MatrixDimension numbers(std::string name, Field TrainingCase::*field, const std::vector<Field>& values) {
  MatrixDimension dimension{std::move(name), {}};
  for (const Field value : values)
    dimension.values.push_back(
        {fmt::format("{}", value), [field, value](TrainingCase& training) { training.*field = value; }});
  return dimension;
}

MatrixDimension toggle(std::string name, std::string plain, std::string other,
                       std::function<void(TrainingCase&)> apply) {
  return {std::move(name), {{std::move(plain), [](TrainingCase&) {}}, {std::move(other), std::move(apply)}}};
}

MatrixValue schedule_value(specs::ScheduleKind kind, std::int64_t virtual_stages) {
  return {fmt::format("{} v{}", specs::name_of(kind), virtual_stages),
          [kind, virtual_stages](TrainingCase& training) {
            training.schedule = kind;
            training.virtual_stages = virtual_stages;
          }};
}

MatrixDimension schedules(const specs::StackSpec& stack) {
  MatrixDimension dimension{"schedule", {{"1f1b", [](TrainingCase&) {}}}};
  for (const specs::ScheduleKind kind : stack.schedules) {
    if (kind == specs::ScheduleKind::one_forward_one_backward) continue;
    std::vector<std::int64_t> virtual_stages{1};
    if (kind == specs::ScheduleKind::interleaved) virtual_stages = {2, 3, 4};
    if (kind == specs::ScheduleKind::zero_bubble_v || kind == specs::ScheduleKind::dual_pipe_v)
      virtual_stages = {2};
    for (const std::int64_t stages : virtual_stages) dimension.values.push_back(schedule_value(kind, stages));
  }
  return dimension;
}

/// Each kernel without and with dropout of its weights.
MatrixDimension attentions(const specs::StackSpec& stack) {
  MatrixDimension dimension{"attention", {}};
  const auto add = [&](specs::AttentionImplementation kind) {
    for (const double dropout : {0.0, 0.1})
      dimension.values.push_back({fmt::format("{} dropout {}", specs::name_of(kind), dropout),
                                  [kind, dropout](TrainingCase& training) {
                                    training.attention = kind;
                                    training.attention_dropout = dropout;
                                  }});
  };
  add(specs::AttentionImplementation::flash);
  for (const specs::AttentionImplementation kind : stack.attention)
    if (kind != specs::AttentionImplementation::flash) add(kind);
  return dimension;
}

/// Each stage with shards over all replicas, and over pairs of them.
MatrixDimension zero_stages(const specs::StackSpec& stack) {
  MatrixDimension dimension{"zero", {}};
  for (const specs::ShardScope scope : stack.shard_scopes)
    for (const std::int64_t stage : stack.zero_stages) {
      const bool node = scope == specs::ShardScope::node;
      if (node && stage == 0) continue;
      dimension.values.push_back(
          {fmt::format("{} {}", stage, specs::name_of(scope)), [stage, scope, node](TrainingCase& training) {
             training.zero.stage = stage;
             training.zero.scope = scope;
             training.zero.shard_ranks = node ? 2 : 0;
           }});
    }
  return dimension;
}

MatrixDimension recomputations(const specs::StackSpec& stack) {
  MatrixDimension dimension{"recomputation", {{"none", [](TrainingCase&) {}}}};
  const auto add = [&](specs::Recomputation mode, RecomputedLayers layers, std::string_view which) {
    dimension.values.push_back(
        {fmt::format("{}{}", specs::name_of(mode), which), [mode, layers](TrainingCase& training) {
           training.recomputation = mode;
           training.recomputed_layers = layers;
         }});
  };
  for (const specs::Recomputation mode : stack.recomputations) {
    if (mode == specs::Recomputation::none) continue;
    add(mode, RecomputedLayers::all, "");
    add(mode, RecomputedLayers::first_half, " of half");
    if (mode == specs::Recomputation::full) add(mode, RecomputedLayers::in_pairs, " in pairs");
  }
  return dimension;
}

/// Nothing, and to each device all and half.
MatrixDimension offload(std::string name, const std::vector<specs::OffloadDevice>& devices,
                        specs::OffloadTreatment specs::StageOffload::*part) {
  MatrixDimension dimension{std::move(name), {{"none", [](TrainingCase&) {}}}};
  for (const specs::OffloadDevice device : devices) {
    if (device == specs::OffloadDevice::none) continue;
    for (const std::int64_t eighths : {8, 4})
      dimension.values.push_back({fmt::format("{} {}/8", specs::name_of(device), eighths),
                                  [device, eighths, part](TrainingCase& training) {
                                    training.offload.*part = {device, eighths};
                                  }});
  }
  return dimension;
}

bool contains(const std::vector<std::int64_t>& values, std::int64_t value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

/// What only a runtime with the matching capability can be asked for.
void add_optional_dimensions(const specs::StackSpec& stack, std::vector<MatrixDimension>& dimensions) {
  if (contains(stack.zero_stages, 3)) {
    dimensions.push_back(
        toggle("kept units", "0", "2", [](TrainingCase& training) { training.zero.kept_units = 2; }));
    dimensions.push_back(
        toggle("prefetch", "1", "2", [](TrainingCase& training) { training.buckets.prefetch_units = 2; }));
  }
  if (stack.output_modes.size() > 1)
    dimensions.push_back(toggle("output layer", "vocabulary", "token", [](TrainingCase& training) {
      training.output_mode = specs::OutputLayerMode::token_parallel;
    }));
  MatrixDimension optimizer =
      offload("optimizer offload", stack.optimizer_offload, &specs::StageOffload::optimizer);
  // What is left on the device is not delayed, and which parameters these are depends on the buckets.
  if (optimizer.values.size() > 1)
    optimizer.values.push_back({"cpu 8/8 delayed", [](TrainingCase& training) {
                                  training.offload.optimizer = {specs::OffloadDevice::cpu, 8};
                                  training.offload.delayed_update = true;
                                }});
  for (auto dimension :
       {std::move(optimizer),
        offload("parameter offload", stack.parameter_offload, &specs::StageOffload::parameters),
        offload("activation offload", stack.activation_offload, &specs::StageOffload::activations)})
    if (dimension.values.size() > 1) dimensions.push_back(std::move(dimension));
}

std::vector<specs::AxisOrder> axis_orders(const specs::StackSpec& stack) {
  std::vector<specs::AxisOrder> orders;
  for (const std::string& name : stack.axis_orders) orders.push_back(*specs::axis_order_from(name));
  return orders;
}

/// Axes of one rank have no place in an order: of the orders that lay the others alike, the first.
bool is_first_of_its_layout(const TrainingCase& training, const std::vector<specs::AxisOrder>& orders) {
  const auto layout = [&](const specs::AxisOrder& order) {
    std::vector<specs::MeshAxis> axes;
    for (const specs::MeshAxis axis : order) {
      const bool wide = (axis == specs::MeshAxis::tensor && training.tensor > 1) ||
                        (axis == specs::MeshAxis::data && training.data > 1) ||
                        (axis == specs::MeshAxis::pipeline && training.pipeline > 1);
      if (wide) axes.push_back(axis);
    }
    return axes;
  };
  for (const specs::AxisOrder& order : orders)
    if (layout(order) == layout(training.order)) return order == training.order;
  return false;
}

/// Which dimensions a rule reads, and whether a case that has them keeps it.
struct CaseRule {
  std::vector<std::string_view> dimensions;
  std::function<bool(const TrainingCase&)> holds;
};

/// The legal placements: of specs/plan/placement_check.h and of this runtime. A test holds every generated
/// placement to both.
std::vector<CaseRule> case_rules(const specs::StackSpec& stack) {
  using Case = const TrainingCase&;
  return {
      {{"tensor", "pipeline"}, [](Case c) { return c.tensor * c.pipeline <= most_ranks; }},
      {{"tensor", "pipeline", "data"}, [](Case c) { return c.ranks() <= most_ranks; }},
      {{"data", "micro-batches"},
       [](Case c) { return TrainingCase::global_batch % (c.data * c.micro_batches) == 0; }},
      {{"tensor", "sequence parallel"}, [](Case c) { return c.tensor > 1 || !c.sequence_parallel; }},
      {{"pipeline", "schedule"},
       [](Case c) {
         const bool plain = c.schedule == specs::ScheduleKind::one_forward_one_backward;
         return (c.pipeline > 1 || plain) && c.stages() <= most_ranks;
       }},
      {{"pipeline", "cut"}, [](Case c) { return c.pipeline > 1 || c.cut == Cut::even; }},
      // Stages that share a rank are equal.
      {{"schedule", "cut"}, [](Case c) { return c.virtual_stages == 1 || c.cut != Cut::front_heavy; }},
      {{"zero", "data"}, [](Case c) { return c.data > 1 || c.zero.stage == 0; }},
      {{"zero", "pipeline"}, [](Case c) { return c.pipeline == 1 || c.zero.stage <= 1; }},
      {{"zero", "data"},
       [](Case c) {
         const bool world = c.zero.scope == specs::ShardScope::world;
         return world || (c.data > c.zero.shard_ranks && c.data % c.zero.shard_ranks == 0);
       }},
      {{"kept units", "zero"}, [](Case c) { return c.zero.kept_units == 0 || c.zero.stage == 3; }},
      {{"prefetch", "zero"}, [](Case c) { return c.buckets.prefetch_units == 1 || c.zero.stage == 3; }},
      {{"output layer", "tensor"},
       [](Case c) { return c.tensor > 1 || c.output_mode == specs::OutputLayerMode::vocabulary_parallel; }},
      {{"parameter offload", "zero"},
       [](Case c) { return c.offload.parameters.device == specs::OffloadDevice::none || c.zero.stage == 3; }},
      {{"overlap", "data"},
       [](Case c) { return (c.overlap_reduction && !c.debug_synchronise) || c.data > 1; }},
      {{"order", "tensor", "pipeline", "data"},
       [orders = axis_orders(stack)](Case c) { return is_first_of_its_layout(c, orders); }},
  };
}

class Matrix {
 public:
  explicit Matrix(const specs::StackSpec& stack)
      : dimensions_(matrix_dimensions(stack)), array_(value_counts(), covering_rules(stack)) {}

  const std::vector<MatrixDimension>& dimensions() const { return dimensions_; }
  const CoveringArray& array() const { return array_; }

  std::size_t index_of(std::string_view name) const {
    const auto found = std::find_if(dimensions_.begin(), dimensions_.end(),
                                    [&](const MatrixDimension& dimension) { return dimension.name == name; });
    return static_cast<std::size_t>(found - dimensions_.begin());
  }

  /// Open places leave what a case has by itself.
  TrainingCase case_of(const CoveringRow& row) const {
    TrainingCase training;
    training.precision = specs::Precision::fp64;
    for (std::size_t i = 0; i < row.size(); ++i)
      if (row[i] != open) dimensions_[i].values[static_cast<std::size_t>(row[i])].apply(training);
    if (training.tensor == 3) {
      if (training.model == TinyModel::llama) training.model = TinyModel::llama_thirds;
      training.sequence_length = 12;  // that it divides
    }
    return training;
  }

 private:
  std::vector<int> value_counts() const {
    std::vector<int> counts;
    for (const MatrixDimension& dimension : dimensions_)
      counts.push_back(static_cast<int>(dimension.values.size()));
    return counts;
  }

  /// Of the dimensions that this runtime has.
  std::vector<CoveringRule> covering_rules(const specs::StackSpec& stack) const {
    std::vector<CoveringRule> rules;
    for (const CaseRule& rule : case_rules(stack)) {
      CoveringRule covering;
      for (const std::string_view name : rule.dimensions)
        if (const std::size_t index = index_of(name); index < dimensions_.size())
          covering.dimensions.push_back(index);
      if (covering.dimensions.size() < rule.dimensions.size()) continue;
      covering.holds = [this, holds = rule.holds, read = covering.dimensions](const CoveringRow& row) {
        CoveringRow chosen(row.size(), open);
        for (const std::size_t dimension : read) chosen[dimension] = row[dimension];
        return holds(case_of(chosen));
      };
      rules.push_back(std::move(covering));
    }
    return rules;
  }

  std::vector<MatrixDimension> dimensions_;
  CoveringArray array_;
};

}  // namespace

std::vector<MatrixDimension> matrix_dimensions(const specs::StackSpec& stack) {
  const std::vector<std::int64_t> degrees{1, 2, 4, 8, 3};
  std::vector<MatrixDimension> dimensions;
  dimensions.push_back(
      toggle("model", "gpt", "llama", [](TrainingCase& training) { training.model = TinyModel::llama; }));
  dimensions.push_back(
      toggle("tables", "tied", "untied", [](TrainingCase& training) { training.tied = false; }));
  dimensions.push_back(numbers("tensor", &TrainingCase::tensor, degrees));
  dimensions.push_back(numbers("pipeline", &TrainingCase::pipeline, degrees));
  dimensions.push_back(numbers("data", &TrainingCase::data, degrees));
  dimensions.push_back(numbers("micro-batches", &TrainingCase::micro_batches, {2, 1, 3, 4, 8}));
  dimensions.push_back(schedules(stack));
  dimensions.push_back({"cut",
                        {{"even", [](TrainingCase&) {}},
                         {"in a layer", [](TrainingCase& training) { training.cut = Cut::sub_layer; }},
                         {"uneven", [](TrainingCase& training) { training.cut = Cut::front_heavy; }}}});
  dimensions.push_back(zero_stages(stack));
  dimensions.push_back(recomputations(stack));
  if (stack.sequence_parallel)
    dimensions.push_back(toggle("sequence parallel", "off", "on",
                                [](TrainingCase& training) { training.sequence_parallel = true; }));
  add_optional_dimensions(stack, dimensions);
  MatrixDimension orders{"order", {}};
  for (const specs::AxisOrder& order : axis_orders(stack))
    orders.values.push_back(
        {specs::to_string(order), [order](TrainingCase& training) { training.order = order; }});
  dimensions.push_back(std::move(orders));
  dimensions.push_back({"buckets",
                        {{"64 KiB", [](TrainingCase&) {}},
                         {"one",
                          [](TrainingCase& training) {
                            training.buckets = {0, 0};
                          }},
                         {"16 KiB", [](TrainingCase& training) {
                            training.buckets = {16384, 16384, 0};
                          }}}});
  dimensions.push_back({"overlap",
                        {{"on", [](TrainingCase&) {}},
                         {"off", [](TrainingCase& training) { training.overlap_reduction = false; }},
                         {"debug-sync", [](TrainingCase& training) { training.debug_synchronise = true; }}}});
  dimensions.push_back(toggle("dropout", "0", "0.1", [](TrainingCase& training) { training.dropout = 0.1; }));
  dimensions.push_back(attentions(stack));
  dimensions.push_back(
      toggle("clipping", "on", "off", [](TrainingCase& training) { training.gradient_clip = 0; }));
  MatrixDimension optimizers{"optimizer", {}};
  for (const specs::OptimizerKind kind : stack.optimizers)
    optimizers.values.push_back(
        {std::string(specs::name_of(kind)), [kind](TrainingCase& training) { training.optimizer = kind; }});
  dimensions.push_back(std::move(optimizers));
  return dimensions;
}

std::vector<TrainingCase> single_placements(const specs::StackSpec& stack) {
  const Matrix matrix(stack);
  std::vector<TrainingCase> cases;
  std::set<CoveringRow> seen;
  const std::size_t model = matrix.index_of("model");
  for (std::size_t dimension = 0; dimension < matrix.dimensions().size(); ++dimension)
    for (std::size_t value = 0; value < matrix.dimensions()[dimension].values.size(); ++value)
      for (const int model_value : {0, 1}) {
        CoveringRow row(matrix.dimensions().size(), open);
        row[model] = model_value;
        row[dimension] = static_cast<int>(value);
        row = matrix.array().complete(std::move(row));
        if (!row.empty() && seen.insert(row).second) cases.push_back(matrix.case_of(row));
      }
  return cases;
}

std::vector<TrainingCase> generator_only_placements(const specs::StackSpec& stack) {
  std::vector<TrainingCase> cases;
  for (const specs::ScheduleKind kind :
       {specs::ScheduleKind::zero_bubble_h2, specs::ScheduleKind::zero_bubble_v}) {
    if (std::find(stack.schedules.begin(), stack.schedules.end(), kind) != stack.schedules.end()) continue;
    for (const std::int64_t pipeline : {2, 4})
      for (const std::int64_t micro_batches : {1, 3, 8}) {
        TrainingCase training;
        training.precision = specs::Precision::fp64;
        training.optimizer = specs::OptimizerKind::adamw;
        training.model = pipeline == 2 ? TinyModel::gpt : TinyModel::llama;
        training.pipeline = pipeline;
        schedule_value(kind, kind == specs::ScheduleKind::zero_bubble_v ? 2 : 1).apply(training);
        training.micro_batches = micro_batches;
        training.tensor = 8 / pipeline == 4 ? 2 : 1;
        training.recomputation = micro_batches == 3 ? specs::Recomputation::full : specs::Recomputation::none;
        if (micro_batches == 8) training.cut = Cut::sub_layer;
        cases.push_back(training);
      }
  }
  return cases;
}

std::vector<TrainingCase> paired_placements(const specs::StackSpec& stack, int times) {
  const Matrix matrix(stack);
  std::vector<TrainingCase> cases;
  for (const CoveringRow& row : matrix.array().pairs(times)) cases.push_back(matrix.case_of(row));
  return cases;
}

std::vector<TrainingCase> all_placements(const specs::StackSpec& stack) {
  const Matrix matrix(stack);
  std::vector<CoveringRow> rows{CoveringRow(matrix.dimensions().size(), open)};
  for (const std::string_view name :
       {"tensor", "pipeline", "data", "schedule", "zero", "model", "tables", "cut", "sequence parallel",
        "output layer", "recomputation", "optimizer offload"}) {
    const std::size_t dimension = matrix.index_of(name);
    if (dimension == matrix.dimensions().size()) continue;
    std::vector<CoveringRow> longer;
    for (const CoveringRow& row : rows)
      for (std::size_t value = 0; value < matrix.dimensions()[dimension].values.size(); ++value) {
        CoveringRow more = row;
        more[dimension] = static_cast<int>(value);
        if (!matrix.array().complete(more).empty()) longer.push_back(std::move(more));
      }
    rows = std::move(longer);
  }
  std::vector<TrainingCase> cases;
  for (const CoveringRow& row : rows) cases.push_back(matrix.case_of(matrix.array().complete(row)));
  return cases;
}

}  // namespace runtime::numerics
