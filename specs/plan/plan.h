// plan.json as a value: the only thing that dsplan and dsrun share.
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
#include "specs/plan/cost_breakdown.h"
#include "specs/plan/placement.h"
#include "specs/schedule/schedule.h"

namespace specs {

/// Raised when an existing field changes its meaning; readers refuse any other.
inline constexpr std::int64_t plan_format_version = 1;

/// The schedule of replicas that run the same number of micro-batches, as run-length text of compute actions,
/// one line a pipeline rank: "F0-3 (F4 B0)x28 …".
struct ReplicaSchedule {
  std::int64_t micro_batches = 1;
  std::vector<std::string> rank_actions;
  bool operator==(const ReplicaSchedule&) const = default;
};

struct PlanSchedule {
  std::string generator;  ///< name of the generator that made it
  std::int64_t generator_version = 1;
  StageLayout layout = StageLayout::round_robin;
  std::vector<ReplicaSchedule> replicas;  ///< one per distinct share; a single one where shares are equal
  bool operator==(const PlanSchedule&) const = default;
};

/// An environment variable the runtime sets for its communication library, and why.
struct EnvironmentSetting {
  std::string name;
  std::string value;
  std::string reason;
  bool operator==(const EnvironmentSetting&) const = default;
};

/// Consecutive ranks on consecutive devices of consecutive nodes, group by group.
struct HostRange {
  std::int64_t first_rank = 0;
  std::int64_t ranks = 0;
  std::int64_t device_group = 0;
  std::int64_t first_node = 0;    ///< within its group
  std::int64_t first_device = 0;  ///< within the first node
  std::int64_t ranks_per_node = 1;
  bool operator==(const HostRange&) const = default;
};

struct RankException {
  std::int64_t rank = 0;
  std::int64_t device_group = 0;
  std::int64_t node = 0;    ///< within its group
  std::int64_t device = 0;  ///< within its node
  bool operator==(const RankException&) const = default;
};

/// rank → (node, device): the rule, and the ranks where it does not hold.
struct RankMapping {
  std::vector<HostRange> ranges;
  std::vector<RankException> exceptions;
  bool operator==(const RankMapping&) const = default;
};

enum class RegionKind : std::uint8_t {
  priced,      ///< every member was priced with the objective
  infeasible,  ///< every member violates the named constraint
  bounded,     ///< a lower bound of every member is no better than the plan
  optimized,   ///< inner dimensions solved exactly by a proven algorithm; `best` is the region's optimum
};

template <>
struct EnumNames<RegionKind> {
  static constexpr std::array<std::pair<RegionKind, std::string_view>, 4> names{{
      {RegionKind::priced, "priced"},
      {RegionKind::infeasible, "infeasible"},
      {RegionKind::bounded, "bounded"},
      {RegionKind::optimized, "optimized"},
  }};
};

/// `dimension` is a key of `[search]`; values are as written there. What belongs to a value stands after a
/// slash: schedule "interleaved/4" (virtual stages), zero_stage "1/node" (shard scope where it is not the
/// world), offload_… "cpu/3" (eighths).
struct RegionDimension {
  std::string dimension;
  std::vector<std::string> values;
  bool operator==(const RegionDimension&) const = default;
};

/// "tensor=4,8 schedule=interleaved/4", and back.
std::string to_string(const std::vector<RegionDimension>& dimensions);
std::vector<RegionDimension> region_dimensions_from(std::string_view text);

/// A part of the space. The regions of a certificate tile it: each candidate is in exactly one.
/// The objective is always minimised: seconds, dollars or joules per step; for goodput, seconds per useful
/// step.
struct CertificateRegion {
  RegionKind kind = RegionKind::priced;
  std::vector<RegionDimension> dimensions;  ///< a conjunction; a dimension not listed is free
  std::string candidates;                   ///< exact count, a decimal integer of any size
  std::string rule;    ///< stable name of the constraint or bound that settles the region
  std::string reason;  ///< infeasible: the failing equation of its best member
  double bound = 0;    ///< bounded: no member is below it, in the objective's unit
  double best =
      0;  ///< priced: the smallest objective of its members that fit; optimized: none of them is below
  bool operator==(const CertificateRegion&) const = default;
};

struct Certificate {
  std::string space_candidates;  ///< exact count of the whole space
  std::string priced_candidates;
  std::string infeasible_candidates;
  std::string bounded_candidates;
  double gap = 0;  ///< (plan − lower bound) / plan: the optimum is at most this fraction below the plan
  bool complete = true;  ///< false: the search was interrupted and the gap is not proven
  std::string method;    ///< "exhaustive" or the name of the bounding search
  std::vector<CertificateRegion> regions;
  bool operator==(const Certificate&) const = default;
};

struct RunnerUp {
  Placement placement;
  double objective = 0;
  double step_seconds = 0;
  double cost_per_step_dollars = 0;
  double energy_per_step_joules = 0;
  std::int64_t peak_device_bytes = 0;
  std::string trade;  ///< what it gives and takes against the plan, one line
  bool operator==(const RunnerUp&) const = default;
};

struct Advice {
  std::string rule;
  std::string message;
  std::string reason;
  std::string source;
  bool operator==(const Advice&) const = default;
};

struct Plan {
  std::int64_t format_version = plan_format_version;
  std::string generator;           ///< "dsplan 0.1.0"
  std::string cost_model_version;  ///< constants and formulas that made the prediction
  Experiment inputs;               ///< resolved: every default filled in, presets expanded
  std::string inputs_hash;         ///< of the resolved inputs' canonical JSON
  std::int64_t world_size = 0;
  std::int64_t idle_devices = 0;
  Placement placement;
  PlanSchedule schedule;
  std::vector<EnvironmentSetting> environment;
  RankMapping ranks;
  double objective = 0;  ///< in the unit of the experiment's objective
  CostBreakdown prediction;
  Certificate certificate;
  std::vector<RunnerUp> runners_up;
  std::vector<Advice> advice;
  bool operator==(const Plan&) const = default;
};

}  // namespace specs
