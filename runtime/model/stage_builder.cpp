#include "runtime/model/stage_builder.h"

#include <algorithm>
#include <cmath>

namespace runtime {

namespace {

/// GPT-2's: 0.02, and on the way into the residual stream divided by √(2 · layers).
constexpr double initial_deviation = 0.02;

}  // namespace

StageBuilder::StageBuilder(const specs::ModelSpec& model, const specs::TrainingSpec& training,
                           const Mesh& mesh, bool sequence_parallel, ParameterRegistry& registry,
                           std::int64_t stage, const FaultSwitches& faults)
    : model_(model),
      training_(training),
      mesh_(mesh),
      sequence_parallel_(sequence_parallel && mesh.tensor().size() > 1),
      registry_(registry),
      stage_(stage),
      faults_(faults),
      names_(model) {}

ParameterSpec StageBuilder::sliced(const std::string& name, std::vector<std::int64_t> shape, std::int64_t dim,
                                   std::int64_t replicas) const {
  ParameterSpec spec;
  spec.name = name;
  spec.contract = Sharded{specs::MeshAxis::tensor, dim, replicas};
  spec.box = slice_of(shape, dim, tensor().size() / replicas, tensor().rank() / replicas);
  spec.local_shape = spec.box.extent;
  spec.global_shape = std::move(shape);
  spec.initial_deviation = initial_deviation;
  if (spec.global_shape.size() == 1) {
    spec.initial = InitialValue::zeros;
    spec.weight_decay = false;
  }
  return spec;
}

ParameterSpec StageBuilder::column_weight(const std::string& name, std::int64_t out, std::int64_t in) const {
  return sliced(name, {out, in}, 0, 1);
}

ParameterSpec StageBuilder::column_bias(const std::string& name, std::int64_t out) const {
  return sliced(name, {out}, 0, 1);
}

ParameterSpec StageBuilder::kv_weight(const std::string& name) const {
  const specs::AttentionSpec& attention = model_.attention;
  const std::int64_t replicas = std::max<std::int64_t>(tensor().size() / attention.kv_heads, 1);
  return sliced(name, {attention.kv_heads * attention.head_dim, model_.hidden}, 0, replicas);
}

ParameterSpec StageBuilder::kv_bias(const std::string& name) const {
  const specs::AttentionSpec& attention = model_.attention;
  const std::int64_t replicas = std::max<std::int64_t>(tensor().size() / attention.kv_heads, 1);
  return sliced(name, {attention.kv_heads * attention.head_dim}, 0, replicas);
}

ParameterSpec StageBuilder::row_weight(const std::string& name, std::int64_t out, std::int64_t in) const {
  ParameterSpec spec = sliced(name, {out, in}, 1, 1);
  spec.initial_deviation = initial_deviation / std::sqrt(2.0 * static_cast<double>(model_.layers));
  return spec;
}

ParameterSpec StageBuilder::replicated(const std::string& name, std::vector<std::int64_t> shape,
                                       InitialValue initial) const {
  ParameterSpec spec;
  spec.name = name;
  spec.contract =
      Replicated{sequence_parallel_ ? std::vector{specs::MeshAxis::tensor} : std::vector<specs::MeshAxis>{}};
  spec.box = {std::vector<std::int64_t>(shape.size(), 0), shape};
  spec.local_shape = shape;
  spec.weight_decay = shape.size() > 1;
  spec.global_shape = std::move(shape);
  spec.initial = initial;
  spec.initial_deviation = initial_deviation;
  return spec;
}

std::unique_ptr<Norm> StageBuilder::norm(const std::string& name) const {
  ParameterBlock& weight = add(replicated(name + ".weight", {model_.hidden}, InitialValue::ones));
  ParameterBlock* bias = nullptr;
  if (model_.normalization == specs::Normalization::layer_norm && model_.norm_bias)
    bias = &add(replicated(name + ".bias", {model_.hidden}, InitialValue::zeros));
  return std::make_unique<Norm>(model_.normalization, weight, bias, model_.norm_epsilon);
}

}  // namespace runtime
