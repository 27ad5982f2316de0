// The price of a placement: bytes on every pipeline rank and seconds of one step, term by term.
//
// An Estimator is built once for a model on a cluster under a recipe; layer costs are remembered by the part
// of a placement that fixes them, so that the search's inner loop only combines them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cost_models/constants.h"
#include "cost_models/layer_cost.h"
#include "cost_models/schedule_path.h"
#include "cost_models/stack_profile.h"
#include "cost_models/stage_cost.h"
#include "cost_models/stage_pricer.h"
#include "specs/language/experiment.h"
#include "specs/plan/cost_breakdown.h"
#include "specs/plan/placement.h"

namespace cost_models {

struct PipelineCut;

/// Memory of a pipeline rank on the devices that it has in one group.
struct RankBytes {
  std::int64_t device_group = 0;
  std::int64_t pipeline_rank = 0;
  std::int64_t device = 0;
  std::int64_t host_per_node = 0;  ///< were all ranks of a node like this one
};

/// What follows from a step time and the devices in use.
struct JobFigures {
  double cost_per_step_dollars = 0;
  double energy_per_step_joules = 0;
  double goodput_fraction = 1;
  double checkpoint_seconds = 0;
  std::int64_t checkpoint_bytes = 0;
  std::int64_t checkpoint_every_steps = 0;  ///< 0: as the recipe says
};

/// What the search compares; no term-by-term account and no allocation.
struct QuickCost {
  double step_seconds = 0;
  std::int64_t peak_device_bytes = 0;         ///< the largest over pipeline ranks, allocator slack included
  std::int64_t peak_host_bytes_per_node = 0;  ///< pinned memory included
  bool operator==(const QuickCost&) const = default;
};

/// Seconds of everything that the actions of a placement's schedule do.
struct PlacementSeconds {
  std::vector<StageSeconds> stages;  ///< of one micro-batch, collectives inside the stage included as exposed
  std::vector<double> transfers;     ///< of one micro-batch one way, after each stage but the last
  std::vector<StepEndSeconds> ends;  ///< after the last backward pass, by pipeline rank
  double fixed = 0;                  ///< of a step, whatever the pipeline does
  std::int64_t micro_batches = 1;    ///< of the replicas whose step takes longest, which these are
};

class Estimator {
 public:
  /// Prices for the experiment's model, cluster, training recipe and software stack. The experiment must have
  /// passed its checks. A stack without constants of its own is priced with the nearest one's.
  explicit Estimator(const specs::Experiment& experiment);
  /// With a profile or constants of one's own (validation and fits).
  Estimator(const specs::Experiment& experiment, const StackProfile& profile, const ConstantTable& constants);
  ~Estimator();
  Estimator(Estimator&&) noexcept;
  Estimator& operator=(Estimator&&) noexcept;

  /// Any placement whose stages cover the model's units in order.
  specs::CostBreakdown estimate(const specs::Placement& placement) const;

  /// Each pipeline rank's memory; where replicas lie in several groups, in each of them.
  std::vector<RankBytes> rank_bytes(const specs::Placement& placement) const;
  /// Whether every rank fits the devices, and the nodes, of its group.
  struct Fits {
    bool device = true;
    bool host = true;
    bool both() const { return device && host; }
  };
  Fits fits(const specs::Placement& placement) const;

  /// For searching over the cuts of one outer point; lives no longer than the estimator.
  StagePricer stage_pricer(const specs::RegularPlacement& outer, std::int64_t device_group = 0) const;

  /// What `estimate` times the pipeline with, for a simulation of the same placement.
  PlacementSeconds seconds_of(const specs::Placement& placement) const;

  /// The same numbers for a regular placement, to rounding. Safe to call from several threads.
  QuickCost quick(const specs::RegularPlacement& placement) const;
  /// Its memory alone, the step left at 0.
  QuickCost quick_memory(const specs::RegularPlacement& placement) const;
  /// Seconds that its step does not go below; no simulation.
  double quick_bound(const specs::RegularPlacement& placement) const;

  /// Cost, energy and goodput of a step of so many seconds; each grows with it, or stays. No allocation.
  JobFigures job_figures(double step_seconds, std::int64_t world_size) const;

  /// What the formulas are given, and the cost of a layer, remembered; for bounds made of the same formulas.
  const CostInputs& inputs(std::int64_t device_group = 0) const;
  LayerCosts layer(const LayerKey& key, std::int64_t device_group = 0) const;

  /// How a regular placement cuts the model, remembered.
  const PipelineCut& cut_of(const specs::RegularPlacement& placement) const;

  /// Device memory that training may use on a group's devices: the catalog's size, which is what the
  /// driver reports to a process. A
  /// placement fits where peak_device_bytes does not exceed it on any stage's group, and
  /// peak_host_bytes_per_node does not exceed usable_host_bytes().
  std::int64_t usable_device_bytes(std::int64_t device_group = 0) const;
  std::int64_t usable_host_bytes(std::int64_t device_group = 0) const;
  /// Of the group whose devices have most.
  std::int64_t most_usable_device_bytes() const;
  bool fits(const QuickCost& cost, std::int64_t device_group = 0) const;

  /// The stack whose rules and constants are used; `exact` is false where it stands in for another.
  const StackProfile& profile() const;

 private:
  void add_job_figures(const specs::Placement& placement, specs::CostBreakdown& breakdown) const;
  struct PricedStages;
  /// Of the replicas of one share; null: as the stages say, all replicas alike.
  PricedStages price_stages(const specs::Placement& placement, const specs::ReplicaShare* share) const;
  /// Of the replicas whose step takes longest.
  PricedStages price_slowest(const specs::Placement& placement) const;

  struct RankMemoryOfGroup;
  std::vector<RankMemoryOfGroup> memory_of_ranks(const specs::Placement& placement,
                                                 const PricedStages& priced,
                                                 const specs::ReplicaShare* share) const;
  /// By share, then by pipeline rank.
  std::vector<RankMemoryOfGroup> memory_of_shares(const specs::Placement& placement) const;
  void add_memory_of_ranks(const specs::Placement& placement, const PricedStages& priced,
                           specs::CostBreakdown& breakdown) const;

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cost_models
