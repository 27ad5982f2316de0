// The objective's pipeline term against the simulation of the same plan: two programs that share the schedule
// and the durations, and nothing else.
#include "planner/simulate/placement_simulation.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "planner/simulate/rank_usage.h"
#include "specs/plan/placement_check.h"
#include "specs/schedule/generate.h"
#include "tests/cost_models/model_fixtures.h"

namespace planner {
namespace {

using specs::ScheduleKind;

class RandomPlacement {
 public:
  explicit RandomPlacement(unsigned seed) : random_(seed) {}

  specs::Experiment experiment() {
    const std::int64_t hidden = 1024 * between(1, 8);
    specs::Experiment experiment = cost_models::testing::experiment(
        cost_models::testing::llama(between(16, 100), hidden, hidden / 128, hidden / 128, 3 * hidden,
                                    1000 * between(8, 256)),
        512, 1, 512 * between(1, 8));
    // From 0.3 to 200 GB/s a node: transfers from nothing to more than a third of a stage.
    experiment.cluster.network.node_bytes_per_second = 2e11 * std::pow(10, -2.8 * unit());
    return experiment;
  }

  /// With `wide` also what a step has beside the pipeline: experts on other ranks, parts of a context,
  /// gradients and parameters in shards that each micro-batch moves, the optimizer's states on the host.
  specs::Placement placement(const specs::ModelSpec& model, bool wide = false) {
    specs::RegularPlacement regular;
    const auto& kinds = specs::EnumNames<ScheduleKind>::names;
    do {
      regular.schedule = kinds[static_cast<std::size_t>(between(0, kinds.size() - 1))].first;
      regular.pipeline = between(2, 16);
      const bool folded =
          regular.schedule == ScheduleKind::zero_bubble_v || regular.schedule == ScheduleKind::dual_pipe_v;
      regular.virtual_stages = folded ? 2 : regular.schedule == ScheduleKind::interleaved ? between(2, 6) : 1;
      regular.accumulation = between(1, 10) * regular.pipeline + (unit() < 0.3 ? between(0, 15) : 0);
    } while (regular.pipeline * regular.virtual_stages > model.layers ||
             !specs::schedule_refusal(regular.schedule, regular.pipeline, regular.virtual_stages,
                                      regular.accumulation)
                  .empty());
    regular.tensor = std::int64_t{1} << between(0, 3);
    regular.data = 8;  // the pipeline's neighbours are on other nodes
    regular.micro_batch = between(1, 4);
    regular.sequence_parallel = true;
    regular.zero.stage = between(0, 1);
    if (wide) widen(regular, model);
    specs::Placement placement = specs::regular_placement(regular, model.layers);
    if (unit() < 0.6) move_cuts(placement);
    if (unit() < 0.3) recompute_some(placement, model.layers);
    return placement;
  }

  /// Some of the blocks hold experts.
  void mix(specs::ModelSpec& model) {
    specs::MixtureSpec mixture;
    mixture.experts = std::int64_t{8} << between(0, 3);
    mixture.top_k = between(1, 4);
    mixture.expert_hidden = model.hidden * between(1, 3);
    mixture.first_dense_layers = between(0, 3);
    model.mixture = mixture;
  }

 private:
  void widen(specs::RegularPlacement& regular, const specs::ModelSpec& model) {
    if (model.mixture) regular.expert = std::int64_t{1} << between(0, 3);
    regular.context = std::int64_t{1} << between(0, 2);
    regular.zero.stage = between(0, 3);
    if (unit() < 0.4) regular.offload.optimizer = {specs::OffloadDevice::cpu, between(1, 8)};
  }

  double unit() { return std::uniform_real_distribution<double>(0, 1)(random_); }
  std::int64_t between(std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random_);
  }

  /// Cuts by up to three units either way, between an attention and its FFN, too.
  void move_cuts(specs::Placement& placement) {
    for (std::size_t index = 0; index + 1 < placement.stages.size(); ++index) {
      specs::UnitRange& here = placement.stages[index].units;
      specs::UnitRange& next = placement.stages[index + 1].units;
      here.end = next.first = std::clamp(here.end + between(-3, 3), here.first + 1, next.end - 1);
    }
  }

  void recompute_some(specs::Placement& placement, std::int64_t layers) {
    for (specs::PipelineStage& stage : placement.stages) {
      const std::int64_t touched = specs::layers_touched(stage.units, layers);
      const std::int64_t full = between(0, touched);
      if (full == 0) continue;
      stage.recomputation = {{full, specs::Recomputation::full}};
      if (full < touched) stage.recomputation.push_back({touched - full, specs::Recomputation::none});
    }
  }

  std::mt19937 random_;
};

/// Of the slowest rank's work, both ways and over all its stages.
double transfer_share(const cost_models::PlacementSeconds& seconds, const specs::Placement& placement) {
  std::map<std::int64_t, double> of_rank;
  for (std::size_t index = 0; index < seconds.stages.size(); ++index)
    of_rank[placement.stages[index].pipeline_rank] += seconds.stages[index].total();
  double slowest = 0;
  for (const auto& [rank, total] : of_rank) slowest = std::max(slowest, total);
  return 2 * static_cast<double>(placement.virtual_stages) * seconds.transfers.front() / slowest;
}

/// What the account names of each rank beside its work: bubble, transfers and its reduction.
void expect_idle_as_told(const specs::CostBreakdown& cost, const StepSimulation& step) {
  using specs::TimeTerm;
  for (const RankUsage& usage : rank_usage(step)) {
    double told = 0;
    for (const specs::TimeEntry& entry : cost.time)
      if (entry.pipeline_rank == usage.rank &&
          (entry.term == TimeTerm::pipeline_bubble || entry.term == TimeTerm::pipeline_transfer ||
           entry.term == TimeTerm::gradient_reduction))
        told += entry.exposed_seconds;
    EXPECT_NEAR(usage.idle_seconds, told, 0.02 * step.seconds()) << "rank " << usage.rank;
  }
}

TEST(PlacementSimulation, AgreesWithTheObjectiveWithinTwoPerCent) {
  constexpr int placements = 400;
  constexpr double most_transfer = 0.30;
  RandomPlacement random(20);
  std::map<ScheduleKind, int> counts;
  int transfer_heavy = 0, uneven = 0, extrapolated = 0;
  double worst = 0, sum = 0;
  for (int count = 0; count < placements;) {
    const specs::Experiment experiment = random.experiment();
    const specs::Placement placement = random.placement(experiment.model);
    const cost_models::Estimator estimator(experiment);
    const double share = transfer_share(estimator.seconds_of(placement), placement);
    if (share > most_transfer) continue;
    ++count;
    ++counts[placement.schedule];
    transfer_heavy += share > 0.05;
    uneven += !specs::as_regular(placement, experiment.model.layers);
    extrapolated += placement.accumulation > 8 * placement.pipeline_ranks();
    const specs::CostBreakdown cost = estimator.estimate(placement);
    const StepSimulation step = simulate_step(estimator, placement);
    const double predicted = cost.step_seconds;
    const double simulated = step.seconds();
    expect_idle_as_told(cost, step);
    const double error = std::abs(predicted / simulated - 1);
    worst = std::max(worst, error);
    sum += error;
    EXPECT_LE(error, 0.02) << specs::name_of(placement.schedule) << " p " << placement.pipeline_ranks()
                           << " v " << placement.virtual_stages << " m " << placement.accumulation
                           << " transfers " << share << ": " << predicted << " s, simulated " << simulated;
  }
  RecordProperty("worst", std::to_string(worst));
  RecordProperty("mean", std::to_string(sum / placements));
  EXPECT_EQ(counts.size(), specs::EnumNames<ScheduleKind>::names.size());
  EXPECT_GE(transfer_heavy, 60);
  EXPECT_GE(uneven, 150);
  EXPECT_GE(extrapolated, 30);
}

TEST(PlacementSimulation, AgreesForExpertsContextShardsAndOffloadToo) {
  constexpr int placements = 300;
  RandomPlacement random(21);
  int mixtures = 0, contexts = 0, offloaded = 0, gradient_shards = 0, parameter_shards = 0;
  double worst = 0;
  for (int count = 0; count < placements;) {
    specs::Experiment experiment = random.experiment();
    if (count % 2 == 0) random.mix(experiment.model);
    const specs::Placement placement = random.placement(experiment.model, true);
    experiment.cluster.groups.front().nodes = std::max<std::int64_t>(placement.world_size() / 8, 1);
    const cost_models::Estimator estimator(experiment);
    if (transfer_share(estimator.seconds_of(placement), placement) > 0.30) continue;
    ++count;
    const specs::PipelineStage& stage = placement.stages.front();
    mixtures += stage.mesh.expert > 1;
    contexts += stage.mesh.context > 1;
    offloaded += stage.offload.optimizer.eighths > 0;
    gradient_shards += stage.zero.stage == 2;
    parameter_shards += stage.zero.stage == 3;
    const double predicted = estimator.estimate(placement).step_seconds;
    const double simulated = simulate_step(estimator, placement).seconds();
    worst = std::max(worst, std::abs(predicted / simulated - 1));
    EXPECT_NEAR(predicted, simulated, 0.02 * simulated)
        << specs::name_of(placement.schedule) << " p " << placement.pipeline_ranks() << " v "
        << placement.virtual_stages << " m " << placement.accumulation << " ZeRO " << stage.zero.stage
        << " expert " << stage.mesh.expert << " context " << stage.mesh.context;
  }
  RecordProperty("worst", std::to_string(worst));
  for (const int drawn : {mixtures, contexts, offloaded, gradient_shards, parameter_shards})
    EXPECT_GE(drawn, placements / 6);
}

TEST(PlacementSimulation, OfSixteenThousandDevicesHasAsManyTasksAsItsPipelineHasActions) {
  specs::Experiment experiment = cost_models::testing::experiment(
      cost_models::testing::llama(126, 16384, 128, 8, 53248, 128256), 2048, 2048, 8192);
  const cost_models::Estimator estimator(experiment);
  specs::RegularPlacement regular;
  regular.tensor = 8;
  regular.pipeline = 16;
  regular.data = 128;
  regular.virtual_stages = 7;
  regular.accumulation = 16;
  regular.schedule = ScheduleKind::interleaved;
  const specs::Placement placement = specs::regular_placement(regular, 126);
  ASSERT_EQ(placement.world_size(), 16384);
  const StepSimulation step = simulate_step(estimator, placement);
  const std::size_t compute = 2 * 16 * 7 * 16;
  const std::size_t transfers = 2 * (16 * 7 - 1) * 16;
  EXPECT_EQ(step.pipeline.tasks.size(), compute + transfers + 16 * 7);  // and a reduction a stage
  EXPECT_NEAR(step.seconds(), estimator.estimate(placement).step_seconds, 0.02 * step.seconds());
}

}  // namespace
}  // namespace planner
