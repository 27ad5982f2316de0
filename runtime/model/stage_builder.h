// What the units of a stage need to declare their parameters and to find their part of the tensor axis.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "runtime/mesh/mesh.h"
#include "runtime/model/norm.h"
#include "runtime/model/parameter_names.h"
#include "runtime/model/parameter_registry.h"
#include "runtime/parallel/linear.h"
#include "runtime/train/fault_switches.h"
#include "specs/language/model.h"
#include "specs/language/training.h"

namespace runtime {

class StageBuilder {
 public:
  /// References must outlive the units built with it.
  StageBuilder(const specs::ModelSpec& model, const specs::TrainingSpec& training, const Mesh& mesh,
               bool sequence_parallel, ParameterRegistry& registry, std::int64_t stage,
               const FaultSwitches& faults);

  /// The same for the parameters of one unit of the model: 0 the embedding, then the blocks, then the output.
  StageBuilder for_unit(std::int64_t unit) const {
    StageBuilder builder = *this;
    builder.unit_ = unit;
    return builder;
  }
  std::int64_t unit() const { return unit_; }

  const specs::ModelSpec& model() const { return model_; }
  const specs::TrainingSpec& training() const { return training_; }
  const Communicator& tensor() const { return mesh_.tensor(); }
  const Mesh& mesh() const { return mesh_; }
  const ParameterNames& names() const { return names_; }
  ParameterRegistry& registry() const { return registry_; }
  bool sequence_parallel() const { return sequence_parallel_; }
  const FaultSwitches& faults() const { return faults_; }

  /// How the input of a column-parallel layer and the output of a row-parallel one lie between the layers.
  LinearInput parallel_input() const {
    return sequence_parallel_ ? LinearInput::gathered : LinearInput::copied;
  }
  LinearOutput parallel_output() const {
    return sequence_parallel_ ? LinearOutput::scattered : LinearOutput::reduced;
  }

  /// A weight [out, in] of which each rank of the tensor axis holds the rows of `slice`; its bias likewise.
  ParameterSpec column_weight(const std::string& name, std::int64_t out, std::int64_t in) const;
  ParameterSpec column_bias(const std::string& name, std::int64_t out) const;
  /// Key or value projection: as above by heads, each on several ranks where the axis is longer than the
  /// heads.
  ParameterSpec kv_weight(const std::string& name) const;
  ParameterSpec kv_bias(const std::string& name) const;
  /// A weight [out, in] of which each rank holds a slice of the columns, and whose output is added to the
  /// residual stream.
  ParameterSpec row_weight(const std::string& name, std::int64_t out, std::int64_t in) const;
  /// The same on every rank of the tensor axis, and used between the parallel layers: its gradient is partial
  /// over the axis where that is where tokens are shared out.
  ParameterSpec replicated(const std::string& name, std::vector<std::int64_t> shape,
                           InitialValue initial) const;

  ParameterBlock& add(ParameterSpec spec) const { return registry_.add(std::move(spec), {stage_, unit_}); }
  ParameterBlock& add(std::vector<ParameterSpec> specs) const {
    return registry_.add(std::move(specs), {stage_, unit_});
  }
  /// Declares weight and, where the model has one, bias.
  std::unique_ptr<Norm> norm(const std::string& name) const;

 private:
  ParameterSpec sliced(const std::string& name, std::vector<std::int64_t> shape, std::int64_t dim,
                       std::int64_t replicas) const;

  const specs::ModelSpec& model_;
  const specs::TrainingSpec& training_;
  const Mesh& mesh_;
  bool sequence_parallel_;
  ParameterRegistry& registry_;
  std::int64_t stage_;
  std::int64_t unit_ = 0;
  const FaultSwitches& faults_;
  ParameterNames names_;
};

}  // namespace runtime
