// The partition algorithm and the inner choices of outer points against brute force: every cut, every number
// of recomputed layers, priced by the estimator.
#include "planner/pricing/inner_choice.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

#include <gtest/gtest.h>

#include "planner/certificate/verify_certificate.h"
#include "planner/plan/plan_experiment.h"
#include "planner/pricing/pricing.h"
#include "planner/pricing/stage_partition.h"
#include "planner/search/branch_and_bound.h"
#include "planner/space/space.h"
#include "planner/space/written_out_choices.h"
#include "specs/schedule/generate.h"
#include "tests/cost_models/model_fixtures.h"
#include "tests/planner/small_experiments.h"

namespace planner {
namespace {

using specs::Placement;
using specs::RegularPlacement;
using specs::ScheduleKind;

/// Units with weights; a stage costs the sum of its weights, the whole is the largest sum plus a term that
/// the bound does not see. At most `room` units fit in a stage, twice as many with recomputation at 4/3 the
/// time.
class WeightedChain : public PartitionProblem {
 public:
  WeightedChain(std::vector<double> weights, std::int64_t stages, std::int64_t room, double unseen)
      : weights_(std::move(weights)), stages_(stages), room_(room), unseen_(unseen) {
    for (std::size_t place = 0; place <= weights_.size(); ++place)
      places_.push_back(static_cast<std::int64_t>(place));
  }
  std::int64_t stages() const override { return stages_; }
  std::span<const std::int64_t> places() const override { return places_; }
  std::optional<StagePart> fitted(std::int64_t, std::int64_t first, std::int64_t end) const override {
    const std::int64_t recomputed = std::max<std::int64_t>(0, 2 * (end - first - room_));
    if (recomputed > end - first) return std::nullopt;
    return StagePart{first, end, recomputed};
  }
  double path(std::int64_t, const StagePart& part) const override { return work(part); }
  double after(std::int64_t stage, const StagePart& part) const override {
    return stage == 0 ? 0.05 * static_cast<double>(part.end) : 0;
  }
  double price(std::span<const StagePart> parts) const override {
    double largest = 0, second = 0;
    for (const StagePart& part : parts) {
      second = std::max(second, std::min(largest, work(part)));
      largest = std::max(largest, work(part));
    }
    return largest + unseen_ * second + after(0, parts.front());
  }
  double work(const StagePart& part) const {
    double sum = 0;
    for (std::int64_t unit = part.first; unit < part.end; ++unit)
      sum += weights_[static_cast<std::size_t>(unit)];
    return sum *
           (1 + static_cast<double>(part.recomputed_layers) / static_cast<double>(part.end - part.first) / 3);
  }

 private:
  std::vector<double> weights_;
  std::int64_t stages_, room_;
  double unseen_;
  std::vector<std::int64_t> places_;
};

/// Calls `visit(ends)` for every way to cut places 0 … last into `stages` parts.
void for_each_cut(std::size_t last, std::size_t stages, std::vector<std::size_t>& ends,
                  const std::function<void(const std::vector<std::size_t>&)>& visit) {
  const std::size_t first = ends.empty() ? 0 : ends.back();
  if (ends.size() + 1 == stages) {
    ends.push_back(last);
    visit(ends);
    ends.pop_back();
    return;
  }
  for (std::size_t end = first + 1; end + (stages - ends.size() - 1) <= last; ++end) {
    ends.push_back(end);
    for_each_cut(last, stages, ends, visit);
    ends.pop_back();
  }
}

TEST(StagePartition, IsTheBestOfAllCutsOrStaysWithinItsBound) {
  std::mt19937 random(4);
  std::uniform_real_distribution<double> weight(0.5, 2);
  int proven = 0, infeasible = 0;
  constexpr int chains = 600;
  for (int count = 0; count < chains; ++count) {
    std::vector<double> weights(4 + random() % 8);
    for (double& value : weights) value = weight(random);
    if (random() % 3 == 0) weights.back() *= 3;  // a heavy output layer
    const auto stages = static_cast<std::int64_t>(1 + random() % 4);
    const WeightedChain chain(weights, stages, 1 + static_cast<std::int64_t>(random() % 6),
                              random() % 2 == 0 ? 0 : 0.1);
    double best = INFINITY;
    std::vector<std::size_t> ends;
    for_each_cut(weights.size(), static_cast<std::size_t>(stages), ends, [&](const auto& cut) {
      std::vector<StagePart> parts;
      std::size_t first = 0;
      for (const std::size_t end : cut) {
        const auto part = chain.fitted(0, static_cast<std::int64_t>(first), static_cast<std::int64_t>(end));
        if (!part) return;
        parts.push_back(*part);
        first = end;
      }
      best = std::min(best, chain.price(parts));
    });
    const std::optional<Partition> found = best_partition(chain, random() % 4 == 0 ? 0 : 100000);
    ASSERT_EQ(found.has_value(), std::isfinite(best));
    if (!found) {
      ++infeasible;
      continue;
    }
    EXPECT_EQ(found->price, chain.price(found->parts));
    EXPECT_GE(found->price, best * (1 - 1e-12));
    EXPECT_LE(found->lower_bound, best * (1 + 1e-12));
    if (found->lower_bound == found->price) ++proven;
  }
  EXPECT_GT(infeasible, 20);
  EXPECT_GT(proven, chains / 2);
}

/// A random job of a few layers on 8 devices whose memory is sometimes too small.
struct Job {
  specs::Experiment experiment;
  specs::StackSpec stack = testing::able_stack();
  RegularPlacement outer;
};

Job random_job(std::mt19937& random) {
  const auto among = [&](std::initializer_list<std::int64_t> values) {
    return *(values.begin() + static_cast<std::ptrdiff_t>(random() % values.size()));
  };
  Job job;
  const std::int64_t layers = among({2, 3, 4, 5, 6});
  job.outer.pipeline = std::min(layers, among({1, 2, 2, 3, 4}));
  job.outer.data = 2;
  job.outer.zero.stage = among({0, 1, 2, 3});
  job.outer.accumulation = among({1, 2, 3, 5, 8, 40});
  constexpr std::array kinds{ScheduleKind::gpipe, ScheduleKind::one_forward_one_backward,
                             ScheduleKind::one_forward_one_backward, ScheduleKind::zero_bubble_h1,
                             ScheduleKind::zero_bubble_h2};
  if (job.outer.pipeline > 1) job.outer.schedule = kinds[random() % kinds.size()];
  if (job.outer.pipeline > 1 && layers % (2 * job.outer.pipeline) == 0 && random() % 3 == 0) {
    job.outer.schedule = ScheduleKind::interleaved;
    job.outer.virtual_stages = 2;
  }
  job.outer.recomputation = std::array{specs::Recomputation::none, specs::Recomputation::selective,
                                       specs::Recomputation::full}[random() % 3];
  job.experiment = cost_models::testing::experiment(
      cost_models::testing::llama(layers, 2048, 16, 16, 5632, among({4000, 32000, 256000})), 8,
      2 * job.outer.accumulation, 4096);
  job.experiment.training.attention = specs::AttentionImplementation::unfused;
  job.experiment.cluster.network.node_bytes_per_second = 2e11 / static_cast<double>(among({1, 1, 10, 100}));
  job.experiment.cluster.groups.front().node.device.memory_bytes = among({8, 12, 16, 80}) << 30;
  // So slow that layers wait for what ZeRO-2 and 3 move.
  if (job.outer.zero.stage >= 2)
    job.experiment.cluster.groups.front().node.link_bytes_per_second /=
        static_cast<double>(among({1, 8, 64, 512}));
  job.stack.cuts_inside_layers = random() % 2 == 0;
  job.stack.uneven_stages = random() % 8 != 0;
  constexpr std::array numbers{specs::RecomputedLayerNumbers::all, specs::RecomputedLayerNumbers::alike,
                               specs::RecomputedLayerNumbers::each, specs::RecomputedLayerNumbers::each};
  job.stack.recomputed_layers = numbers[random() % numbers.size()];
  if (job.stack.recomputed_layers == specs::RecomputedLayerNumbers::each && random() % 6 == 0)
    job.experiment.search.recomputed_layers = {0, 1, 2};
  return job;
}

/// Every inner choice, written out with no help from the code under test.
std::vector<Placement> all_choices(const Job& job) {
  const std::int64_t layers = job.experiment.model.layers;
  const Placement even = specs::regular_placement(job.outer, layers);
  std::vector<Placement> cuts;
  if (job.stack.uneven_stages && job.outer.pipeline > 1 && job.outer.virtual_stages == 1) {
    std::vector<std::int64_t> places;
    for (std::int64_t unit = 2; unit <= 2 * layers; ++unit)
      if (job.stack.cuts_inside_layers || unit % 2 == 1) places.push_back(unit);
    std::vector<std::size_t> ends;
    for_each_cut(places.size() + 1, even.stages.size(), ends, [&](const auto& cut) {
      Placement placement = even;
      std::int64_t first = 0;
      for (std::size_t stage = 0; stage < cut.size(); ++stage) {
        const std::int64_t end = stage + 1 == cut.size() ? 2 * layers + 2 : places[cut[stage] - 1];
        placement.stages[stage].units = {first, end};
        first = end;
      }
      cuts.push_back(placement);
    });
  } else {
    cuts.push_back(even);
  }
  std::vector<Placement> choices;
  for (const Placement& cut : cuts) {
    std::vector<std::int64_t> counts(static_cast<std::size_t>(job.outer.pipeline), 0);
    if (job.outer.recomputation != specs::Recomputation::none &&
        job.stack.recomputed_layers != specs::RecomputedLayerNumbers::each) {
      const std::int64_t stages = job.outer.pipeline * job.outer.virtual_stages;
      const bool all = job.stack.recomputed_layers == specs::RecomputedLayerNumbers::all ||
                       job.outer.recomputation == specs::Recomputation::selective;
      const std::int64_t most = (layers + stages - 1) / stages;
      for (std::int64_t number = all ? most : 1; number <= most; ++number) {
        Placement placement = cut;
        for (specs::PipelineStage& stage : placement.stages) {
          const std::int64_t touched = specs::layers_touched(stage.units, layers);
          const std::int64_t count = number == most && all ? touched : std::min(number, touched);
          stage.recomputation = {{count, job.outer.recomputation}};
          if (count < touched) stage.recomputation.push_back({touched - count, specs::Recomputation::none});
        }
        choices.push_back(placement);
      }
      continue;
    }
    const std::function<void(std::size_t)> recompute = [&](std::size_t rank) {
      if (rank == counts.size()) {
        const bool nowhere = std::all_of(counts.begin(), counts.end(), [](auto count) { return count == 0; });
        if (nowhere != (job.outer.recomputation == specs::Recomputation::none)) return;
        Placement placement = cut;
        for (specs::PipelineStage& stage : placement.stages) {
          const std::int64_t touched = specs::layers_touched(stage.units, layers);
          const std::int64_t count = counts[static_cast<std::size_t>(stage.pipeline_rank)];
          if (count > touched) return;
          stage.recomputation.clear();
          if (count > 0) stage.recomputation.push_back({count, job.outer.recomputation});
          if (count > 0 && count < touched)
            stage.recomputation.push_back({touched - count, specs::Recomputation::none});
        }
        choices.push_back(placement);
        return;
      }
      const auto& list = job.experiment.search.recomputed_layers;
      for (counts[rank] = 0; counts[rank] <= layers; ++counts[rank])
        if (list.empty() || std::find(list.begin(), list.end(), counts[rank]) != list.end() ||
            job.outer.recomputation == specs::Recomputation::none)
          recompute(rank + 1);
      counts[rank] = 0;
    };
    recompute(0);
  }
  return choices;
}

TEST(InnerChoices, AreCountedExactlyAndTheBestIsFoundWithinItsBound) {
  std::mt19937 random(9);
  int uneven = 0, infeasible = 0, proven = 0, recomputed = 0;
  constexpr int jobs = 500;
  double worst_gap = 0;
  for (int count = 0; count < jobs; ++count) {
    const Job job = random_job(random);
    const cost_models::Estimator estimator(job.experiment);
    const InnerChoices inner(job.experiment, job.stack, estimator);
    const std::vector<Placement> choices = all_choices(job);
    EXPECT_EQ(inner.count(job.outer), Count(choices.size())) << count;
    const WrittenOutChoices written(job.experiment, job.stack);
    EXPECT_EQ(written.count(job.outer), Count(choices.size())) << count;
    std::mt19937_64 draws(static_cast<std::uint64_t>(count));
    for (int draw = 0; draw < 4 && !choices.empty(); ++draw)
      EXPECT_NE(std::find(choices.begin(), choices.end(), written.draw(job.outer, draws)), choices.end());
    double best = INFINITY;
    for (const Placement& placement : choices) {
      const specs::CostBreakdown cost = estimator.estimate(placement);
      if (cost.peak_device_bytes <= estimator.usable_device_bytes() &&
          cost.peak_host_bytes_per_node <= estimator.usable_host_bytes())
        best = std::min(best, cost.step_seconds);
    }
    const InnerChoice found = inner.best(job.outer);
    SCOPED_TRACE(std::string(specs::name_of(job.outer.schedule)) + " " +
                 std::string(specs::name_of(job.outer.recomputation)) + " pipeline " +
                 std::to_string(job.outer.pipeline) + " layers " +
                 std::to_string(job.experiment.model.layers));
    const Placement placement = inner.placement(job.outer, found);
    // Where none fits it is the even cut with all layers recomputed, which [search] may leave out.
    if (std::isfinite(best) || job.experiment.search.recomputed_layers.empty()) {
      ASSERT_NE(std::find(choices.begin(), choices.end(), placement), choices.end()) << count;
      const specs::CostBreakdown cost = estimator.estimate(placement);
      EXPECT_NEAR(found.cost.step_seconds, cost.step_seconds, 1e-9 * cost.step_seconds);
      EXPECT_EQ(found.cost.peak_device_bytes, cost.peak_device_bytes);
    }
    ASSERT_EQ(estimator.fits(found.cost), std::isfinite(best)) << count;
    if (!std::isfinite(best)) {
      ++infeasible;
      continue;
    }
    EXPECT_GE(found.cost.step_seconds, best * (1 - 1e-9)) << count;
    EXPECT_LE(found.least_step_seconds, best * (1 + 1e-9)) << count;
    EXPECT_LE(inner.least_step_seconds(job.outer), best * (1 + 1e-9)) << count;
    EXPECT_FALSE(inner.take_longer(job.outer, best * (1 + 1e-9))) << count;
    // Recomputing somewhere where nothing need be is not the optimum of anything; its bound still holds.
    if (job.outer.recomputation == specs::Recomputation::none || found.least_step_seconds > 0.999 * best) {
      EXPECT_LE(found.cost.step_seconds, best * 1.005) << count;
    }
    worst_gap = std::max(worst_gap, found.cost.step_seconds / best - 1);
    proven += found.cost.step_seconds <= best * (1 + 1e-9);
    uneven += placement.stages != specs::regular_placement(job.outer, job.experiment.model.layers).stages;
    recomputed += job.outer.recomputation != specs::Recomputation::none;
  }
  RecordProperty("worst_gap", std::to_string(worst_gap));
  RecordProperty("best_found", proven);
  EXPECT_GT(uneven, 100);
  EXPECT_GT(infeasible, 20);
  EXPECT_GT(recomputed, 100);
  EXPECT_GT(proven, (jobs - infeasible) / 2);
}

TEST(InnerChoices, AreSearchedTogetherWithTheOuterPoints) {
  std::mt19937 random(31);
  int uneven = 0, recomputed = 0, planned = 0;
  for (int count = 0; count < 60; ++count) {
    Job job = random_job(random);
    job.stack.schedules = {ScheduleKind::one_forward_one_backward, ScheduleKind::zero_bubble_h1};
    job.stack.recomputations = {specs::Recomputation::none, specs::Recomputation::full};
    job.stack.zero_stages = {1};
    job.stack.shard_scopes = {specs::ShardScope::world};
    job.stack.context_parallel = false;
    specs::Experiment& experiment = job.experiment;
    experiment.model.layers = 4;
    experiment.cluster.groups.front().nodes = 1;
    experiment.cluster.groups.front().node.devices = 4;
    experiment.training.global_batch = 8;
    job.stack.recomputed_layers = specs::RecomputedLayerNumbers::each;
    experiment.search.recomputed_layers.clear();
    experiment.search.tensor = {1, 2};
    const cost_models::Estimator estimator(experiment);
    const Space space(experiment, job.stack);
    Count members = 0;
    double best = INFINITY;
    for (const MeshSpace& mesh : space.meshes())
      space.for_each(mesh, [&](const RegularPlacement& outer) {
        job.outer = outer;
        for (const Placement& placement : all_choices(job)) {
          ++members;
          const specs::CostBreakdown cost = estimator.estimate(placement);
          if (cost.peak_device_bytes <= estimator.usable_device_bytes() &&
              cost.peak_host_bytes_per_node <= estimator.usable_host_bytes())
            best = std::min(best, cost.step_seconds);
        }
      });
    const EstimatorPricer pricer(experiment, job.stack, estimator);
    const SearchResult result = branch_and_bound(experiment, space, estimator, pricer);
    EXPECT_EQ(result.candidates, members);
    ASSERT_EQ(result.best.has_value(), std::isfinite(best)) << count;
    if (!result.best) continue;
    ++planned;
    const double price = result.best->price.objective;
    EXPECT_GE(price, best * (1 - 1e-9));
    EXPECT_LE(price * (1 - result.gap()), best * (1 + 1e-9));
    EXPECT_LE(result.gap(), 0.005);
    const Placement placement = pricer.placement(result.best->placement);
    EXPECT_NEAR(estimator.estimate(placement).step_seconds, price, 1e-9 * price);
    uneven += !specs::as_regular(placement, 4);
    for (const specs::PipelineStage& stage : placement.stages)
      recomputed += stage.recomputation.size() > 1 ? 1 : 0;
  }
  EXPECT_GT(planned, 30);
  EXPECT_GT(uneven + recomputed, 5);
}

TEST(InnerChoices, AreInTheCertificateAndHeldToIt) {
  specs::Experiment experiment = cost_models::testing::experiment(
      cost_models::testing::llama(10, 4096, 32, 32, 11008, 256000), 1, 32, 4096);
  experiment.model.vocabulary_multiple = 1;
  experiment.training.steps = 1;
  experiment.search.pipeline = {4};
  const specs::Result<PlanOutcome> outcome = plan_experiment(experiment);
  ASSERT_TRUE(outcome.ok());
  ASSERT_TRUE(outcome.value->plan);
  const specs::Plan& plan = *outcome.value->plan;
  VerifyOptions options;
  options.samples_per_region = 50;
  const specs::Result<Verification> verification = verify_certificate(plan, options);
  ASSERT_TRUE(verification.ok());
  for (const auto& finding : verification->findings)
    ADD_FAILURE() << finding.region << ": " << finding.message;
  EXPECT_EQ(verification->counted_candidates, plan.certificate.space_candidates);
  EXPECT_LE(plan.certificate.gap, 0.005);

  specs::Plan false_plan = plan;
  std::string& claimed = false_plan.certificate.regions.front().candidates;
  claimed = Count(Count(claimed) - 1).str();
  EXPECT_FALSE(verify_certificate(false_plan, options)->findings.empty());
}

}  // namespace
}  // namespace planner
