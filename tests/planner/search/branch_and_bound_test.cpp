#include "planner/search/branch_and_bound.h"

#include <cmath>
#include <map>
#include <random>

#include <gtest/gtest.h>

#include "planner/search/exhaustive_search.h"
#include "planner/search/lower_bounds.h"
#include "tests/planner/random_experiments.h"

namespace planner {
namespace {

using testing::RandomExperiments;

struct Searched {
  explicit Searched(const specs::Experiment& inputs)
      : experiment(inputs),
        stack(*specs::stack_of(inputs.training)),
        estimator(experiment),
        pricer(experiment, stack, estimator),
        space(experiment, stack) {}
  const specs::Experiment experiment;
  const specs::StackSpec stack;
  const cost_models::Estimator estimator;
  const EstimatorPricer pricer;
  const Space space;

  Count members() const {
    Count members = 0;
    for (const MeshSpace& mesh : space.meshes())
      space.for_each(mesh, [&](const specs::RegularPlacement& outer) { members += pricer.members(outer); });
    return members;
  }
  SearchResult bounded() const { return branch_and_bound(experiment, space, estimator, pricer); }
  SearchResult exhaustive() const { return exhaustive_search(experiment, stack, pricer); }
};

std::string named(const specs::Experiment& experiment) {
  return experiment.training.stack + ", " + std::to_string(experiment.cluster.devices()) + " devices, " +
         std::to_string(experiment.model.layers) + " layers, batch " +
         std::to_string(experiment.training.global_batch);
}

/// Of a certificate.
constexpr double largest_gap = 0.005;

/// Holds the search to the exhaustive one, which prices every cut and every number of recomputed layers by
/// the full account; each instance has uneven cuts.
void find_the_optimum_of(int instances, std::uint32_t seed) {
  RandomExperiments experiments(seed);
  int without_gap = 0, infeasible = 0;
  for (int round = 0; round < instances; ++round) {
    const Searched searched(experiments.next(3000, true));
    const SearchResult result = searched.bounded();
    const SearchResult reference = searched.exhaustive();
    const std::string name = "instance " + std::to_string(round) + ": " + named(searched.experiment);
    ASSERT_EQ(result.candidates, reference.candidates) << name;
    ASSERT_EQ(result.best.has_value(), reference.best.has_value()) << name;
    if (!result.best) {
      ++infeasible;
      ASSERT_TRUE(result.nearest_infeasible.has_value()) << name;
      ASSERT_EQ(excess_of(result.nearest_infeasible->price, searched.pricer).bytes,
                excess_of(reference.nearest_infeasible->price, searched.pricer).bytes)
          << name;
      continue;
    }
    without_gap += result.gap() == 0;
    ASSERT_LE(result.gap(), largest_gap) << name;
    const double optimum = reference.best->price.objective;
    ASSERT_LE(result.best->price.objective * (1 - result.gap()), optimum * (1 + 1e-9)) << name;
    ASSERT_GE(result.best->price.objective, optimum * (1 - 1e-9)) << name;
    ASSERT_EQ(result.runners_up.size(), reference.runners_up.size()) << name;
    // Cuts of other meshes are looked at closely only where they lead.
    for (std::size_t place = 0; place < result.runners_up.size(); ++place) {
      const double runner_up = reference.runners_up[place].price.objective;
      ASSERT_GE(result.runners_up[place].price.objective, runner_up * (1 - 1e-9)) << name << " " << place;
      ASSERT_LE(result.runners_up[place].price.objective, runner_up * 1.02) << name << " " << place;
    }
  }
  ::testing::Test::RecordProperty("without_gap", without_gap);
  EXPECT_GE(2 * without_gap, instances);
  EXPECT_GT(infeasible, 0);
  EXPECT_LT(infeasible, instances / 2);
}

TEST(BranchAndBound, FindsTheOptimumThatPricingEveryCandidateFinds) { find_the_optimum_of(120, 5); }
TEST(NightlyBranchAndBound, FindsTheOptimumThatPricingEveryCandidateFinds) { find_the_optimum_of(500, 15); }
TEST(BranchAndBound, FindsTheOptimumAmongModuleTreatmentsGroupsAndDelayedUpdates) {
  RandomExperiments experiments(15);
  int with_modules = 0, with_groups = 0, with_delay = 0;
  while (std::min({with_modules, with_groups, with_delay}) < 12) {
    specs::Experiment inputs = experiments.next(20000);
    inputs.training.stack = "dsrun";
    inputs.training.attention = specs::AttentionImplementation::flash;
    if (specs::check_experiment(inputs).has_errors()) continue;
    const Searched searched(inputs);
    if (searched.space.outer_points() == 0 || searched.space.outer_points() > 6000) continue;
    if (searched.members() > 6000) continue;
    bool modules = false, groups = false;
    for (const MeshSpace& mesh : searched.space.meshes()) {
      modules = modules || searched.space.modules(mesh).size() > 2;
      for (const BatchChoice& batch : searched.space.batches(mesh))
        for (const ScheduleChoice& schedule : searched.space.schedules(batch))
          groups = groups || schedule.micro_batch_group > 0;
    }
    const bool delayed = !searched.space.offload().delayed_optimizer.empty();
    if (!modules && !groups && !delayed) continue;
    with_modules += modules;
    with_groups += groups;
    with_delay += delayed;
    const SearchResult result = searched.bounded(), reference = searched.exhaustive();
    ASSERT_EQ(result.candidates, reference.candidates) << named(inputs);
    ASSERT_EQ(result.best.has_value(), reference.best.has_value()) << named(inputs);
    if (!result.best) continue;
    ASSERT_LE(result.gap(), largest_gap) << named(inputs);
    const double optimum = reference.best->price.objective;
    ASSERT_LE(result.best->price.objective * (1 - result.gap()), optimum * (1 + 1e-9)) << named(inputs);
    ASSERT_GE(result.best->price.objective, optimum * (1 - 1e-9)) << named(inputs);
  }
}

/// Calls `visit(mesh, batch, point, price)` for every outer point.
template <class Visit>
void for_each_price(const Searched& searched, Visit&& visit) {
  for (const MeshSpace& mesh : searched.space.meshes())
    searched.space.for_each(mesh, [&](const specs::RegularPlacement& point) {
      for (const BatchChoice& batch : searched.space.batches(mesh))
        if (batch.micro_batch == point.micro_batch) visit(mesh, batch, point, searched.pricer.price(point));
    });
}

/// Rates that no GPU has: devices slower than their host, links slower than a drive.
void scatter_rates(specs::Experiment& experiment, std::mt19937& random) {
  const auto scatter = [&](double& rate) {
    rate *= std::pow(10.0, std::uniform_real_distribution<double>(-4, 1)(random));
  };
  specs::NodeSpec& node = experiment.cluster.groups.front().node;
  for (double* rate :
       {&node.device.memory_bytes_per_second, &node.device.host_link_bytes_per_second,
        &node.link_bytes_per_second, &node.host_memory_bytes_per_second, &node.nvme_read_bytes_per_second,
        &node.nvme_write_bytes_per_second, &experiment.cluster.network.node_bytes_per_second})
    scatter(*rate);
  for (auto& [precision, rate] : node.device.peak_flops) scatter(rate);
}

TEST(BranchAndBound, FindsTheOptimumWhateverTheRatesAre) {
  RandomExperiments experiments(25);
  std::mt19937 random(26);
  int quicker_on_hosts = 0;
  for (int round = 0; round < 150; ++round) {
    specs::Experiment inputs = experiments.next(4000);
    scatter_rates(inputs, random);
    const Searched searched(inputs);
    const SearchResult result = searched.bounded();
    const SearchResult reference = searched.exhaustive();
    ASSERT_EQ(result.best.has_value(), reference.best.has_value()) << named(inputs);
    if (!result.best) continue;
    quicker_on_hosts += !searched.pricer.slower_in_larger_shares(specs::OffloadDevice::cpu);
    const double optimum = reference.best->price.objective;
    ASSERT_LE(result.best->price.objective * (1 - result.gap()), optimum * (1 + 1e-9)) << named(inputs);
    ASSERT_GE(result.best->price.objective, optimum * (1 - 1e-9)) << named(inputs);
    for_each_price(searched, [&](const MeshSpace& mesh, const BatchChoice&,
                                 const specs::RegularPlacement& point, const Price& price) {
      ASSERT_LE(searched.pricer.step_bound(point), price.step_seconds * (1 + 1e-12))
          << named(inputs) << ": " << describe(mesh.mesh) << ", " << specs::name_of(point.schedule);
    });
  }
  EXPECT_GE(quicker_on_hosts, 20);
}

TEST(BranchAndBound, RegionsAddUpToTheSpaceAndNoneIsBetterThanThePlan) {
  RandomExperiments experiments(6);
  for (int round = 0; round < 60; ++round) {
    const Searched searched(experiments.next(20000));
    const SearchResult result = searched.bounded();
    Count sum = 0;
    for (const Region& region : result.regions) sum += region.candidates;
    EXPECT_EQ(sum, result.candidates);
    EXPECT_EQ(sum, result.priced + result.infeasible + result.bounded);
    if (!result.best) continue;
    for (const Region& region : result.regions) {
      if (region.kind == specs::RegionKind::infeasible) continue;
      EXPECT_GE(region.objective, result.best->price.objective * (1 - result.gap()) * (1 - 1e-9));
    }
  }
}

TEST(LowerBounds, NoMemberIsBelowTheBoundsOfItsRegion) {
  RandomExperiments experiments(7);
  for (int round = 0; round < 120; ++round) {
    const Searched searched(experiments.next(3000));
    std::map<const MeshSpace*, MeshBounds> bounds;
    for (const MeshSpace& mesh : searched.space.meshes())
      bounds.emplace(&mesh, MeshBounds(searched.experiment, searched.space, searched.estimator, mesh));
    for_each_price(searched, [&](const MeshSpace& mesh, const BatchChoice& batch,
                                 const specs::RegularPlacement& point, const Price& price) {
      const MeshBounds& bound = bounds.at(&mesh);
      const auto work = bound.work(batch, point.sequence_parallel, point.modules);
      ASSERT_LE(bound.step_seconds(batch, {point.schedule, point.virtual_stages}, work),
                price.step_seconds * (1 + 1e-12))
          << named(searched.experiment) << ": " << describe(mesh.mesh) << ", "
          << specs::name_of(point.schedule) << ", micro-batch " << point.micro_batch;
      ASSERT_LE(bound.device_bytes(), price.peak_device_bytes) << named(searched.experiment);
      ASSERT_LE(searched.pricer.step_bound(point), price.step_seconds * (1 + 1e-12))
          << named(searched.experiment) << ": " << describe(mesh.mesh) << ", "
          << specs::name_of(point.schedule) << ", micro-batch " << point.micro_batch;
    });
  }
}

TEST(LowerBounds, LargerSharesTakeLongerAndLeaveLessOnTheDevice) {
  RandomExperiments experiments(8);
  for (int round = 0; round < 60; ++round) {
    const Searched searched(experiments.next(3000));
    // Where layers are recomputed in part, larger shares may spare some of that: bounds are compared instead.
    struct Priced {
      specs::StageOffload offload;
      Price price;
      double bound_seconds = 0;
      bool single = true;
    };
    std::map<std::string, std::vector<Priced>> alike;
    for_each_price(searched, [&](const MeshSpace&, const BatchChoice&, const specs::RegularPlacement& point,
                                 const Price& price) {
      specs::RegularPlacement without = point;
      without.offload = {};
      const std::size_t key = hash_value(specs::regular_placement(without, searched.experiment.model.layers));
      alike[std::to_string(key)].push_back(
          {point.offload, price, searched.pricer.step_bound(point), searched.pricer.members(point) == 1});
    });
    const auto within = [](const specs::OffloadTreatment& small, const specs::OffloadTreatment& large) {
      return small.eighths <= large.eighths && (small.device == large.device || small.eighths == 0);
    };
    for (const auto& [key, points] : alike)
      for (const auto& [small, price, bound, single] : points)
        for (const auto& [large, other, larger_bound, also_single] : points) {
          if (!within(small.optimizer, large.optimizer) || !within(small.parameters, large.parameters) ||
              !within(small.activations, large.activations))
            continue;
          ASSERT_LE(bound, larger_bound * (1 + 1e-9)) << named(searched.experiment);
          ASSERT_LE(bound, other.step_seconds * (1 + 1e-9)) << named(searched.experiment);
          if (!single) continue;
          ASSERT_LE(price.step_seconds, other.step_seconds * (1 + 1e-9)) << named(searched.experiment);
          ASSERT_GE(price.peak_device_bytes, other.peak_device_bytes) << named(searched.experiment);
          ASSERT_LE(price.peak_host_bytes_per_node, other.peak_host_bytes_per_node)
              << named(searched.experiment);
        }
  }
}

TEST(BranchAndBound, AStoppedSearchKeepsItsRegionsAndSaysThatNothingIsProven) {
  const Searched searched(RandomExperiments(9).next(20000));
  const std::atomic<bool> stop{true};
  const SearchResult result =
      branch_and_bound(searched.experiment, searched.space, searched.estimator, searched.pricer, &stop);
  EXPECT_FALSE(result.complete);
  EXPECT_EQ(result.candidates, Count(searched.space.outer_points()));
  EXPECT_EQ(result.priced, 0);
}

}  // namespace
}  // namespace planner
