// Which values of each dimension are legal: by arithmetic, by the model's sizes, by the software stack's
// profile, and by the experiment's [search] restrictions. The space is enumerated with these functions and
// `why-not` answers with them, so that there is one definition of what is excluded and why.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "specs/diagnostics/enum_names.h"
#include "specs/language/experiment.h"
#include "specs/language/stack.h"
#include "specs/plan/placement.h"

namespace planner {

enum class Constraint : std::uint8_t {
  device_count,    ///< the degrees do not multiply to the devices in use
  model_shape,     ///< heads, widths, layers or experts do not divide
  batch_shape,     ///< the batch or the sequence does not divide
  schedule_shape,  ///< the schedule does not exist for these numbers
  software_stack,  ///< the profile says the stack cannot run it
  search_restriction,
  device_memory,
  host_memory,
};

}  // namespace planner

template <>
struct specs::EnumNames<planner::Constraint> {
  static constexpr std::array<std::pair<planner::Constraint, std::string_view>, 8> names{{
      {planner::Constraint::device_count, "device count"},
      {planner::Constraint::model_shape, "model shape"},
      {planner::Constraint::batch_shape, "batch shape"},
      {planner::Constraint::schedule_shape, "schedule"},
      {planner::Constraint::software_stack, "software stack"},
      {planner::Constraint::search_restriction, "search restriction"},
      {planner::Constraint::device_memory, "device memory"},
      {planner::Constraint::host_memory, "host memory"},
  }};
};

namespace planner {

/// The constraint that excludes a value and the equation that fails, with its numbers.
struct Refusal {
  Constraint constraint = Constraint::device_count;
  std::string equation;
  bool operator==(const Refusal&) const = default;
};

using MaybeRefusal = std::optional<Refusal>;

/// Degrees of the device grid of a regular placement.
struct MeshDegrees {
  std::int64_t tensor = 1;
  std::int64_t context = 1;
  std::int64_t pipeline = 1;
  std::int64_t data = 1;
  std::int64_t expert = 1;
  std::int64_t expert_tensor = 1;

  std::int64_t world_size() const { return tensor * context * pipeline * data; }
  auto operator<=>(const MeshDegrees&) const = default;
};

MeshDegrees mesh_of(const specs::RegularPlacement& placement);

std::int64_t degree_of(const MeshDegrees& mesh, specs::MeshAxis axis);

/// "tensor=8 pipeline=16 data=8", then context, expert and expert_tensor where they are not 1.
std::string describe(const MeshDegrees& mesh);

enum class OffloadPart : std::uint8_t { optimizer, parameters, activations };

/// The rules, for one experiment on one software stack. A restriction of [search] binds only where its
/// dimension has an effect: schedule and virtual stages with a pipeline, sequence parallelism with a tensor
/// axis, ZeRO with more than one replica, its scope with ZeRO, module degrees and the output layer's mode
/// with a tensor axis, delayed updates with an optimizer that is offloaded. Where a dimension has none, the
/// placement carries the neutral value. Stages may be uneven, but where a pipeline rank holds several they
/// are equal.
class Legality {
 public:
  Legality(const specs::Experiment& experiment, const specs::StackSpec& stack);

  MaybeRefusal tensor(std::int64_t degree) const;
  MaybeRefusal context(std::int64_t degree) const;
  MaybeRefusal pipeline(std::int64_t degree) const;
  MaybeRefusal data(std::int64_t degree) const;
  MaybeRefusal experts(const MeshDegrees& mesh) const;
  /// Several kinds of nodes: each pipeline rank, or each replica, lies on nodes of one kind.
  MaybeRefusal groups(const MeshDegrees& mesh) const;
  MaybeRefusal micro_batch(const MeshDegrees& mesh, std::int64_t micro_batch) const;
  MaybeRefusal schedule(const MeshDegrees& mesh, std::int64_t accumulation, specs::ScheduleKind kind,
                        std::int64_t virtual_stages, std::int64_t micro_batch_group = 0) const;
  MaybeRefusal modules(const MeshDegrees& mesh, const specs::ModuleTreatments& modules) const;
  MaybeRefusal sequence_parallel(const MeshDegrees& mesh, bool on) const;
  MaybeRefusal recomputation(specs::Recomputation mode) const;
  MaybeRefusal zero(const MeshDegrees& mesh, const specs::ZeroTreatment& zero) const;
  MaybeRefusal offload(const MeshDegrees& mesh, const specs::StageOffload& offload,
                       const specs::ZeroTreatment& zero) const;
  MaybeRefusal delayed_update(const specs::StageOffload& offload) const;
  MaybeRefusal axis_order(const MeshDegrees& mesh, const specs::AxisOrder& order) const;
  MaybeRefusal local_steps(const MeshDegrees& mesh, const specs::ZeroTreatment& zero,
                           std::int64_t steps) const;

  /// The legal orders of a mesh, each way to lay out its axes above 1 once: the default first.
  std::vector<specs::AxisOrder> axis_orders(const MeshDegrees& mesh) const;
  /// The legal treatments of the module kinds: the mesh's own degree for all first.
  std::vector<specs::ModuleTreatments> module_choices(const MeshDegrees& mesh) const;
  /// Micro-batches that may go round together in an interleaved schedule: those that [search] names, 0 for as
  /// many as there are pipeline ranks; 0 alone where it names none.
  std::vector<std::int64_t> micro_batch_groups(std::int64_t pipeline) const;
  /// The legal treatments of a part (of the parameters: under ZeRO-3), nothing first, then each device with
  /// every share, the smallest first.
  std::vector<specs::OffloadTreatment> offload_choices(OffloadPart part) const;

  /// The first rule that the placement breaks, in the order above; the world size is not among them.
  MaybeRefusal placement(const specs::RegularPlacement& placement) const;

 private:
  MaybeRefusal virtual_stages(const MeshDegrees& mesh, std::int64_t virtual_stages) const;
  MaybeRefusal micro_batch_group(const MeshDegrees& mesh, std::int64_t accumulation,
                                 std::int64_t group) const;
  /// Under every legal order of the axes, since the scope of shards is chosen apart from it.
  bool shares_nodes_evenly(const MeshDegrees& mesh) const;
  MaybeRefusal positions_over_tensor(const MeshDegrees& mesh) const;
  MaybeRefusal offload_of(OffloadPart part, const specs::OffloadTreatment& treatment) const;

  const specs::Experiment& experiment_;
  const specs::StackSpec& stack_;
  std::int64_t layers_;  ///< that a pipeline is cut into, encoder and prediction layers included
};

}  // namespace planner
