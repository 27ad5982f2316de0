#include "planner/plan/plan_experiment.h"

#include <algorithm>
#include <array>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cost_models/estimate.h"
#include "planner/certificate/verify_certificate.h"
#include "planner/plan/price_placement.h"
#include "planner/pricing/pricing.h"
#include "planner/questions/sweep.h"
#include "planner/questions/what_if.h"
#include "planner/questions/why_not.h"
#include "specs/language/catalog.h"
#include "specs/language/read_experiment.h"
#include "specs/plan/placement_check.h"
#include "specs/plan/plan_json.h"
#include "specs/schedule/text.h"
#include "specs/schedule/verify.h"

namespace planner {
namespace {

using ::testing::HasSubstr;

specs::Experiment experiment_of(const std::vector<std::string>& settings = {}) {
  const auto experiment = specs::read_experiment("examples/gpt3-175b.toml", settings);
  EXPECT_TRUE(experiment.ok()) << experiment.diagnostics.render();
  return *experiment;
}

/// A model and a cluster small enough that a search takes milliseconds.
specs::Experiment small_experiment(const std::vector<std::string>& settings = {}) {
  std::vector<std::string> all{"cluster.nodes=1", "training.global_batch=16", "model.preset=gpt2-medium",
                               "training.sequence_length=1024", "training.tokens=0"};
  all.insert(all.end(), settings.begin(), settings.end());
  return experiment_of(all);
}

specs::Plan plan_of(const specs::Experiment& experiment) {
  const auto outcome = plan_experiment(experiment);
  EXPECT_TRUE(outcome.ok()) << outcome.diagnostics.render();
  EXPECT_TRUE(outcome->plan.has_value());
  return *outcome->plan;
}

TEST(PlanExperiment, WhereTransfersTakeLongBoundsOfCutsLeaveNoGap) {
  const auto experiment = specs::read_experiment(
      "examples/objectives.toml", {"search.idle_nodes=0", "search.tensor=[4]", "search.pipeline=[8]",
                                   "search.schedule=[\"1f1b\"]", "search.recomputation=[\"none\"]"});
  ASSERT_TRUE(experiment.ok()) << experiment.diagnostics.render();
  const specs::Plan plan = plan_of(*experiment);
  double transfers = 0;
  for (const specs::TimeEntry& entry : plan.prediction.time)
    if (entry.pipeline_rank < 0 && entry.term == specs::TimeTerm::pipeline_transfer)
      transfers += entry.exposed_seconds;
  EXPECT_GT(transfers, 0.3 * plan.prediction.step_seconds);
  EXPECT_EQ(plan.certificate.gap, 0);
}

TEST(PlanExperiment, Gpt3OnAThousandGpusGetsTheLayoutThatPractitionersUse) {
  const specs::Plan plan = plan_of(experiment_of());
  EXPECT_EQ(plan.world_size, 1024);
  EXPECT_EQ(plan.idle_devices, 0);
  EXPECT_GE(plan.placement.stages.front().mesh.tensor, 4);
  EXPECT_LE(plan.placement.stages.front().mesh.tensor, 8);  // inside the node
  EXPECT_GE(plan.placement.pipeline_ranks(), 4);
  EXPECT_LE(plan.placement.pipeline_ranks(), 16);
  EXPECT_GT(plan.prediction.model_flops_utilization, 0.40);
  EXPECT_LT(plan.prediction.model_flops_utilization, 0.65);
  EXPECT_FALSE(plan.runners_up.empty());
  EXPECT_TRUE(plan.certificate.complete);
}

TEST(PlanExperiment, ThePlanIsWholeAndChecksOutByCodeThatDidNotMakeIt) {
  const specs::Plan plan = plan_of(experiment_of());
  const auto violations = specs::placement_violations(plan.placement, plan.inputs.model, plan.inputs.cluster,
                                                      plan.inputs.training);
  EXPECT_TRUE(violations.empty()) << violations.front().message;
  specs::Schedule shape;
  shape.kind = plan.placement.schedule;
  shape.layout = plan.schedule.layout;
  shape.pipeline_ranks = static_cast<std::int32_t>(plan.placement.pipeline_ranks());
  shape.virtual_stages = static_cast<std::int32_t>(plan.placement.virtual_stages);
  shape.micro_batches = static_cast<std::int32_t>(plan.placement.accumulation);
  const auto schedule = specs::from_text(shape, plan.schedule.replicas.front().rank_actions);
  ASSERT_TRUE(schedule.ok()) << schedule.diagnostics.render();
  EXPECT_TRUE(specs::verify(*schedule).empty());
  const auto read_back = specs::read_plan_text(specs::write_plan(plan), "plan.json");
  ASSERT_TRUE(read_back.ok()) << read_back.diagnostics.render();
  EXPECT_EQ(*read_back, plan);
}

TEST(PlanExperiment, TheSearchPricesAsTheFullAccountDoes) {
  const specs::Plan plan = plan_of(small_experiment());
  EXPECT_NEAR(plan.objective, plan.prediction.step_seconds, 1e-9 * plan.objective);
  const cost_models::Estimator estimator(plan.inputs);
  for (const specs::RunnerUp& runner_up : plan.runners_up) {
    const specs::CostBreakdown cost = estimator.estimate(runner_up.placement);
    EXPECT_NEAR(cost.step_seconds, runner_up.step_seconds, 1e-9 * cost.step_seconds);
    EXPECT_EQ(cost.peak_device_bytes, runner_up.peak_device_bytes);
    EXPECT_GE(runner_up.objective, plan.objective);
  }
}

TEST(PlanExperiment, EveryObjectiveIsPricedAsTheFullAccountDoes) {
  for (const char* objective : {"cost", "energy", "goodput"}) {
    const specs::Plan plan =
        plan_of(small_experiment({std::string("search.objective=") + objective, "search.idle_nodes=1",
                                  "cluster.nodes=2", "cluster.failures_per_node_hour=0.001"}));
    const cost_models::Estimator estimator(plan.inputs);
    EXPECT_GT(plan.objective, 0) << objective;
    for (const specs::RunnerUp& runner_up : plan.runners_up) {
      const double full = objective_of(plan.inputs.search.objective, estimator.estimate(runner_up.placement));
      EXPECT_NEAR(runner_up.objective, full, 1e-9 * full) << objective;
    }
  }
}

TEST(PlanExperiment, RestrictionsOfTheSearchAreHonoured) {
  const specs::Plan plan = plan_of(small_experiment({"search.tensor=[2]", "search.micro_batch=[2]"}));
  EXPECT_EQ(plan.placement.stages.front().mesh.tensor, 2);
  EXPECT_EQ(plan.placement.micro_batch, 2);
}

TEST(PlanExperiment, ADimensionThatIsNotSearchedIsRefusedNotIgnored) {
  const auto outcome = plan_experiment(small_experiment({"search.output_tensor=[2]"}));
  EXPECT_FALSE(outcome.ok());
  EXPECT_THAT(outcome.diagnostics.render(), HasSubstr("search.output_tensor"));
}

TEST(PlanExperiment, WhatDoesNotFitComesWithChangesThatWereTried) {
  std::vector<std::string> settings{"cluster.nodes=2", "training.global_batch=64", "training.tokens=0",
                                    "search.offload_optimizer=[\"none\"]", "search.recomputation=[\"none\"]"};
  const auto outcome = plan_experiment(experiment_of(settings));
  ASSERT_TRUE(outcome.ok());
  ASSERT_TRUE(outcome->infeasibility.has_value());
  const Infeasibility& answer = *outcome->infeasibility;
  EXPECT_THAT(answer.reasons.at(0), HasSubstr("more a device"));
  ASSERT_FALSE(answer.remedies.empty());
  settings.push_back(answer.remedies.front().setting);
  EXPECT_EQ(plan_of(experiment_of(settings)).prediction.peak_device_bytes,
            answer.remedies.front().candidate.price.peak_device_bytes);
}

TEST(PlanExperiment, AnIllegalRestrictionIsAnsweredWithItsEquation) {
  specs::Experiment experiment = small_experiment();
  experiment.search.tensor = {3};
  const auto outcome = plan_experiment(experiment);
  ASSERT_TRUE(outcome.ok());
  ASSERT_TRUE(outcome->infeasibility.has_value());
  EXPECT_THAT(outcome->infeasibility->reasons.at(0),
              HasSubstr("search.tensor = [3] leaves no placement: 16 heads % tensor 3 = 1"));
}

TEST(PlanExperiment, TensorParallelismStaysInsideTheNodeAndAcrossItTheExchangesAreTheReason) {
  const specs::Experiment experiment =
      experiment_of({"model.preset=llama2-70b", "cluster.nodes=4", "cluster.network=ib-hdr-1x200",
                     "training.global_batch=64", "training.sequence_length=4096", "training.tokens=0"});
  const specs::Plan plan = plan_of(experiment);
  EXPECT_LE(plan.placement.stages.front().mesh.tensor, 8);
  specs::Experiment question = experiment;
  question.search.tensor = {16};
  const auto answer = why_not(plan, std::nullopt, question);
  ASSERT_TRUE(answer.ok() && answer->cost);
  EXPECT_GT(answer->cost->step_seconds, 1.5 * plan.prediction.step_seconds);
  const auto exchange = [](const specs::CostBreakdown& cost) {
    return cost.exposed_seconds(specs::TimeTerm::tensor_communication);
  };
  EXPECT_GT(exchange(*answer->cost) - exchange(plan.prediction),
            0.5 * (answer->cost->step_seconds - plan.prediction.step_seconds));
}

TEST(PlanExperiment, EachObjectiveOfTheExampleChoosesAPlanOfItsOwnThatIsBestByItsMeasure) {
  std::vector<specs::Plan> plans;
  constexpr std::array objectives{specs::Objective::step_time, specs::Objective::cost,
                                  specs::Objective::energy, specs::Objective::goodput};
  for (const specs::Objective objective : objectives) {
    const auto experiment = specs::read_experiment(
        "examples/objectives.toml", {"search.objective=" + std::string(specs::name_of(objective))});
    ASSERT_TRUE(experiment.ok()) << experiment.diagnostics.render();
    plans.push_back(plan_of(*experiment));
  }
  for (std::size_t chosen = 0; chosen < plans.size(); ++chosen)
    for (std::size_t other = 0; other < plans.size(); ++other) {
      if (other == chosen) continue;
      EXPECT_NE(plans[chosen].placement, plans[other].placement);
      EXPECT_LT(plans[chosen].objective, objective_of(objectives[chosen], plans[other].prediction))
          << specs::name_of(objectives[chosen]) << " against " << specs::name_of(objectives[other]);
    }
}

TEST(PlanExperiment, OfAMixedClusterThatNoMeshUsesWholeTheLargestPartIsPlannedAndTheRestIsNamed) {
  // 3 and 4 nodes of 8 devices: a mesh of all 56 needs a factor of 7, which nothing has here.
  specs::Experiment experiment =
      small_experiment({"model.heads=16", "model.kv_heads=16", "training.global_batch=16",
                        "search.pipeline=[1,2,4]", "search.context=[1]"});
  experiment.cluster.groups.front().nodes = 3;
  experiment.cluster.groups.push_back(experiment.cluster.groups.front());
  experiment.cluster.groups.back().node = *specs::catalog_node("dgx-h100");
  experiment.cluster.groups.back().nodes = 4;
  const auto outcome = plan_experiment(experiment);
  ASSERT_TRUE(outcome.ok()) << outcome.diagnostics.render();
  ASSERT_TRUE(outcome->plan.has_value());
  const specs::Plan& plan = *outcome->plan;
  EXPECT_EQ(plan.world_size, 32);
  EXPECT_EQ(plan.idle_devices, 0);
  const auto idle = std::find_if(plan.advice.begin(), plan.advice.end(),
                                 [](const specs::Advice& advice) { return advice.rule == "idle-nodes"; });
  ASSERT_NE(idle, plan.advice.end());
  EXPECT_THAT(idle->message, HasSubstr("nodes stay idle"));
  EXPECT_THAT(idle->reason, HasSubstr("56 devices"));
  const auto verified = verify_certificate(plan);
  ASSERT_TRUE(verified.ok());
  EXPECT_TRUE(verified->holds()) << verified->findings.front().message;
  const auto read_back = specs::read_plan_text(specs::write_plan(plan), "plan.json");
  EXPECT_TRUE(read_back.ok()) << read_back.diagnostics.render();
}

Verdict verdict_of(const specs::Plan& plan, const std::vector<std::string>& question) {
  const auto answer = why_not(plan, std::nullopt, small_experiment(question));
  EXPECT_TRUE(answer.ok()) << answer.diagnostics.render();
  return answer->verdict;
}

TEST(WhyNot, TellsTheVerdictsApart) {
  const specs::Plan plan = plan_of(small_experiment({"search.micro_batch=[1]", "search.tensor=[1]"}));
  specs::Experiment illegal = small_experiment();
  illegal.search.tensor = {3};
  EXPECT_EQ(why_not(plan, std::nullopt, illegal)->verdict, Verdict::illegal);
  EXPECT_EQ(verdict_of(plan, {"search.tensor=[2]"}), Verdict::excluded_by_search);
  EXPECT_EQ(verdict_of(plan, {"search.tensor=[1]", "search.micro_batch=[1]"}), Verdict::chosen);
  EXPECT_EQ(
      verdict_of(plan, {"search.tensor=[1]", "search.micro_batch=[1]", "search.recomputation=[\"full\"]"}),
      Verdict::worse);
}

// Asked for another recomputation of a plan that had to be of tensor 2, the answer keeps to tensor 2.
TEST(WhyNot, ChoosesWhatIsLeftOutWithinThePlansOwnSearch) {
  const std::string own = "search.tensor=[2]", asked = "search.recomputation=[\"full\"]";
  const specs::Plan plan = plan_of(small_experiment({own}));
  const auto kept = why_not(plan, small_experiment({own, asked}), small_experiment({asked}));
  ASSERT_TRUE(kept.ok());
  EXPECT_EQ(kept->verdict, Verdict::worse);
  EXPECT_EQ(kept->placement->stages.front().mesh.tensor, 2);
}

// Gathers of ZeRO-3 hide the fetch of a few parameters from a drive: as fast with as without, and the plan
// goes without.
TEST(PlanExperiment, OffloadsNothingWhereThatOnlyCostsNoTime) {
  const auto experiment = specs::read_experiment_text(R"(
[model]
preset = "llama2-7b"
[cluster]
node = "dgx-a100-80gb"
[training]
global_batch = 64
sequence_length = 4096
stack = "deepspeed"
[search]
zero_stage = 3
pipeline = 1
)",
                                                      "sharded.toml");
  ASSERT_TRUE(experiment.ok()) << experiment.diagnostics.render();
  const specs::Plan plan = plan_of(*experiment);
  EXPECT_EQ(plan.placement.stages.front().offload, specs::StageOffload{});
  EXPECT_EQ(plan.prediction.peak_host_bytes_per_node, 0);
}

TEST(WhatIf, PricesTheSamePlacementAndANewOne) {
  const auto answer = what_if(experiment_of(), experiment_of({"cluster.network=ethernet-25g"}));
  ASSERT_TRUE(answer.ok()) << answer.diagnostics.render();
  ASSERT_TRUE(answer->base.plan && answer->unchanged && answer->replanned.plan);
  EXPECT_EQ(answer->unchanged->plan.placement, answer->base.plan->placement);
  EXPECT_GT(answer->unchanged->plan.prediction.step_seconds, answer->base.plan->prediction.step_seconds);
  EXPECT_LE(answer->replanned.plan->prediction.step_seconds, answer->unchanged->plan.prediction.step_seconds);
}

TEST(WhatIf, OnOtherNodesTheSamePlacementHasAsManyReplicasAsTheyHold) {
  const auto answer = what_if(experiment_of(), experiment_of({"cluster.nodes=64"}));
  ASSERT_TRUE(answer.ok()) << answer.diagnostics.render();
  ASSERT_TRUE(answer->base.plan && answer->unchanged);
  specs::StageMesh expected = answer->base.plan->placement.stages.front().mesh;
  expected.data /= 2;
  EXPECT_EQ(answer->unchanged->plan.placement.stages.front().mesh, expected);
  EXPECT_EQ(answer->unchanged->plan.placement.micro_batch, answer->base.plan->placement.micro_batch);
  const auto too_few = what_if(experiment_of(), experiment_of({"cluster.nodes=1"}));
  ASSERT_TRUE(too_few.ok());
  EXPECT_FALSE(too_few->unchanged);
  ASSERT_FALSE(too_few->unchanged_refusals.empty());
  EXPECT_THAT(too_few->unchanged_refusals.front(), ::testing::Not(HasSubstr("placement/stages")));
}

TEST(PlanExperiment, OneDeviceOffloadsItsParametersWhereTheStackCan) {
  const auto alone = [](const std::string& stack) {
    const auto outcome = plan_experiment(experiment_of(
        {"model.preset=gpt3-13b", "cluster.nodes=1", "cluster.node={preset=\"dgx-a100-40gb\", devices=1}",
         "training.global_batch=4", "training.tokens=0", "training.stack=" + stack}));
    EXPECT_TRUE(outcome.ok()) << outcome.diagnostics.render();
    return *outcome;
  };
  const PlanOutcome offloaded = alone("deepspeed");
  ASSERT_TRUE(offloaded.plan);
  const specs::PipelineStage& stage = offloaded.plan->placement.stages.front();
  EXPECT_EQ(stage.zero.stage, 3);
  EXPECT_NE(stage.offload.parameters.device, specs::OffloadDevice::none);
  EXPECT_TRUE(verify_certificate(*offloaded.plan)->holds());
  EXPECT_FALSE(alone("megatron-core").plan);
}

TEST(PricePlacement, PricesWhatDoesNotFitAndSaysByHowMuch) {
  const auto priced = price_best_completion(experiment_of({"search.tensor=[1]", "search.pipeline=[8]"}));
  ASSERT_TRUE(priced.ok()) << priced.diagnostics.render();
  EXPECT_THAT(priced->memory_shortfall, HasSubstr("needs"));
  EXPECT_GT(priced->plan.prediction.peak_device_bytes, priced->usable_device_bytes);
}

TEST(Sweep, PlansEachPointInOrderAndMarksTheParetoFront) {
  std::vector<specs::SweepPoint> points;
  for (const char* batch : {"8", "16", "32"})
    points.push_back({{std::string("training.global_batch=") + batch},
                      small_experiment({std::string("training.global_batch=") + batch})});
  std::size_t finished = 0;
  const std::atomic<bool> stop = false;
  const auto outcomes = run_sweep(
      points, {.threads = 2, .finished = [&](std::size_t, const SweepOutcome&) { ++finished; }}, stop);
  EXPECT_EQ(finished, 3u);
  ASSERT_EQ(outcomes.size(), 3u);
  for (std::size_t point = 0; point < points.size(); ++point) {
    EXPECT_EQ(outcomes[point].settings, points[point].settings);
    ASSERT_TRUE(outcomes[point].outcome && outcomes[point].outcome->plan);
    EXPECT_EQ(*outcomes[point].outcome->plan, plan_of(points[point].experiment));
  }
  const std::vector<bool> front = pareto_front(outcomes);
  EXPECT_TRUE(front[0]);  // the smallest batch has the shortest step
}

TEST(Sweep, AStoppedSweepLeavesTheRestUnplanned) {
  const std::vector<specs::SweepPoint> points(3, {{}, small_experiment()});
  const std::atomic<bool> stop = true;
  const auto outcomes =
      run_sweep(points, {.finished = [](std::size_t, const SweepOutcome&) { FAIL(); }}, stop);
  for (const SweepOutcome& outcome : outcomes) EXPECT_FALSE(outcome.outcome.has_value());
}

/// Small enough to be priced whole by the verification.
specs::Experiment enumerable_experiment() {
  return small_experiment({"search.offload_optimizer=[\"none\"]", "search.offload_activations=[\"none\"]",
                           "search.pipeline=[1,2]", "search.micro_batch=[1,2]"});
}

TEST(VerifyCertificate, HoldsWhatTheSearchClaims) {
  const auto verification =
      verify_certificate(plan_of(enumerable_experiment()), {.samples_per_region = 1000000});
  ASSERT_TRUE(verification.ok());
  EXPECT_TRUE(verification->holds()) << verification->findings.front().region << ": "
                                     << verification->findings.front().message;
  EXPECT_EQ(verification->counted_candidates, std::to_string(verification->priced_members));
}

/// A false certificate, made from a true one.
specs::Plan falsified(const std::function<void(specs::Plan&)>& change) {
  static const specs::Plan plan = plan_of(enumerable_experiment());
  specs::Plan copy = plan;
  change(copy);
  return copy;
}

bool caught(const specs::Plan& plan) {
  const auto verification = verify_certificate(plan, {.samples_per_region = 1000000});
  return !verification->holds();
}

TEST(VerifyCertificate, CatchesEachWayToMakeItFalse) {
  EXPECT_FALSE(caught(falsified([](specs::Plan&) {})));
  EXPECT_TRUE(caught(falsified(
      [](specs::Plan& plan) { plan.certificate.regions.erase(plan.certificate.regions.begin()); })));
  EXPECT_TRUE(caught(falsified([](specs::Plan& plan) {
    auto& region = plan.certificate.regions.front();
    region.candidates = std::to_string(std::stoll(region.candidates) + 1);
  })));
  EXPECT_TRUE(caught(falsified([](specs::Plan& plan) {
    for (specs::CertificateRegion& region : plan.certificate.regions)
      if (region.kind == specs::RegionKind::priced) region.kind = specs::RegionKind::infeasible;
  })));
  EXPECT_TRUE(caught(falsified([](specs::Plan& plan) { plan.objective *= 0.98; })));
  // A worse plan whose price is right, with the certificate of the best.
  EXPECT_TRUE(caught(falsified([](specs::Plan& plan) {
    const specs::RunnerUp& worse = plan.runners_up.back();
    plan.placement = worse.placement;
    plan.objective = worse.objective;
    for (specs::CertificateRegion& region : plan.certificate.regions)
      region.best = std::max(region.best, worse.objective);
  })));
}

}  // namespace
}  // namespace planner
