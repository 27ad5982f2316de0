#include "planner/search/exhaustive_search.h"

#include <random>

#include <gtest/gtest.h>

#include "planner/search/near_misses.h"
#include "planner/space/space.h"
#include "tests/planner/small_experiments.h"

namespace planner {
namespace {

using specs::RegularPlacement;
using testing::able_stack;
using testing::small_experiment;

/// Prices that are arbitrary but fixed by the placement, with many ties in time.
class ArbitraryPricer : public Pricer {
 public:
  explicit ArbitraryPricer(std::uint64_t seed) : seed_(seed) {}

  Price price(const RegularPlacement& placement) const override {
    std::uint64_t hash = seed_;
    for (const std::int64_t value :
         {placement.tensor, placement.context, placement.pipeline, placement.data, placement.micro_batch,
          placement.virtual_stages, static_cast<std::int64_t>(placement.schedule),
          static_cast<std::int64_t>(placement.recomputation), placement.zero.stage,
          static_cast<std::int64_t>(placement.zero.scope),
          static_cast<std::int64_t>(placement.sequence_parallel)})
      hash = (hash ^ static_cast<std::uint64_t>(value)) * 0x9E3779B97F4A7C15ull + (hash >> 29);
    const double seconds = 1 + static_cast<double>(hash >> 32 & 0xFF);
    return {seconds, seconds, static_cast<std::int64_t>(hash >> 8 & 0xFFFF),
            static_cast<std::int64_t>(hash & 0xFF)};
  }
  double step_bound(const RegularPlacement&) const override { return 0; }
  Price least_memory(const RegularPlacement& placement) const override { return price(placement); }
  double objective(double step_seconds, std::int64_t) const override { return step_seconds; }
  specs::Placement placement(const RegularPlacement&) const override { return {}; }
  Count members(const RegularPlacement&) const override { return 1; }
  std::int64_t usable_device_bytes() const override { return 0x8000; }
  std::int64_t usable_host_bytes() const override { return 0xE0; }

 private:
  std::uint64_t seed_;
};

struct Instance {
  specs::Experiment experiment;
  specs::StackSpec stack = able_stack();
};

Instance random_instance(std::mt19937& random) {
  const auto pick = [&](std::initializer_list<std::int64_t> values) {
    return *(values.begin() + std::uniform_int_distribution<std::size_t>(0, values.size() - 1)(random));
  };
  return {
      small_experiment(pick({1, 2, 4, 6, 8, 16}), pick({1, 2, 4, 6}), pick({1, 2, 4}), pick({1, 4, 8, 16}))};
}

/// By the planner's own enumeration, which the reference does not use.
std::vector<PricedCandidate> all_that_fit(const Instance& instance, const Pricer& pricer) {
  const Space space(instance.experiment, instance.stack);
  std::vector<PricedCandidate> fitting;
  for (const MeshSpace& mesh : space.meshes())
    space.for_each(mesh, [&](const RegularPlacement& placement) {
      const Price price = pricer.price(placement);
      if (!excess_of(price, pricer).constraint) fitting.push_back({placement, price});
    });
  return fitting;
}

TEST(ExhaustiveSearch, FindsTheBestCandidateAndTheBestOfEachOtherMesh) {
  std::mt19937 random(7);
  int with_plan = 0;
  for (int round = 0; round < 100; ++round) {
    const Instance instance = random_instance(random);
    const ArbitraryPricer pricer(random());
    const SearchResult result = exhaustive_search(instance.experiment, instance.stack, pricer);

    std::vector<PricedCandidate> fitting = all_that_fit(instance, pricer);
    std::stable_sort(fitting.begin(), fitting.end(), [](const PricedCandidate& a, const PricedCandidate& b) {
      return is_better(a.price, b.price);
    });
    ASSERT_EQ(result.best.has_value(), !fitting.empty());
    if (fitting.empty()) continue;
    ++with_plan;
    EXPECT_EQ(result.best->price, fitting.front().price);
    std::vector<PricedCandidate> distinct;
    for (const PricedCandidate& candidate : fitting)
      if (std::none_of(distinct.begin(), distinct.end(), [&](const PricedCandidate& other) {
            return mesh_of(other.placement) == mesh_of(candidate.placement);
          }))
        distinct.push_back(candidate);
    ASSERT_EQ(result.runners_up.size(), std::min(most_runners_up, distinct.size() - 1));
    for (std::size_t place = 0; place < result.runners_up.size(); ++place)
      EXPECT_EQ(result.runners_up[place].price, distinct[place + 1].price);
  }
  EXPECT_GT(with_plan, 60);
}

TEST(ExhaustiveSearch, RegionsTileTheSpace) {
  std::mt19937 random(11);
  for (int round = 0; round < 50; ++round) {
    Instance instance = random_instance(random);
    instance.stack.uneven_stages = false;  // one cut alone
    const ArbitraryPricer pricer(random());
    const SearchResult result = exhaustive_search(instance.experiment, instance.stack, pricer);
    const Space space(instance.experiment, instance.stack);
    EXPECT_EQ(result.candidates, Count(space.outer_points()));
    EXPECT_EQ(result.regions.size(), space.meshes().size());
    EXPECT_EQ(result.gap(), 0);
    EXPECT_TRUE(result.complete);
  }
}

TEST(ExhaustiveSearch, TheNearestInfeasibleLacksTheFewestBytes) {
  Instance instance{small_experiment(8, 4, 4, 8)};
  class Tight : public ArbitraryPricer {
   public:
    using ArbitraryPricer::ArbitraryPricer;
    std::int64_t usable_device_bytes() const override { return -1; }
  };
  const Tight pricer(3);
  const SearchResult result = exhaustive_search(instance.experiment, instance.stack, pricer);
  ASSERT_FALSE(result.best.has_value());
  std::int64_t fewest = std::numeric_limits<std::int64_t>::max();
  const Space space(instance.experiment, instance.stack);
  for (const MeshSpace& mesh : space.meshes())
    space.for_each(mesh, [&](const RegularPlacement& placement) {
      fewest = std::min(fewest, excess_of(pricer.price(placement), pricer).bytes);
    });
  EXPECT_EQ(excess_of(result.nearest_infeasible->price, pricer).bytes, fewest);
}

TEST(NearMisses, OfThoseThatWouldBeBetterTheOneThatLacksLeastIsNamed) {
  class Tight : public ArbitraryPricer {
   public:
    using ArbitraryPricer::ArbitraryPricer;
    std::int64_t usable_device_bytes() const override { return 100; }
    std::int64_t usable_host_bytes() const override { return 1000; }
  };
  const Tight pricer(1);
  const auto miss = [](double objective, std::int64_t device, std::int64_t host) {
    return PricedCandidate{{}, {objective, objective, device, host}};
  };
  NearMisses misses(pricer);
  EXPECT_FALSE(misses.better_than({10, 10, 0, 0}));
  misses.add(miss(2, 300, 0));
  misses.add(miss(5, 130, 0));
  misses.add(miss(6, 0, 1200));  // a fifth of the host's memory is less than three tenths of the device's
  misses.add(miss(9, 250, 0));
  misses.add(miss(4, 100, 1000));  // fits
  EXPECT_EQ(misses.better_than({10, 10, 0, 0})->price.objective, 6);
  EXPECT_EQ(misses.better_than({6, 6, 0, 0})->price.objective, 5);
  EXPECT_EQ(misses.better_than({3, 3, 0, 0})->price.objective, 2);
  EXPECT_FALSE(misses.better_than({2, 2, 0, 0}));
  EXPECT_TRUE(misses.dominates({0, 0, 400, 0}, 2.5));
  EXPECT_FALSE(misses.dominates({0, 0, 110, 0}, 5));
}

TEST(ExhaustiveSearch, AStoppedSearchSaysThatNothingIsProven) {
  const Instance instance{small_experiment(8, 4, 4, 8)};
  const ArbitraryPricer pricer(3);
  const std::atomic<bool> stop{true};
  const SearchResult result = exhaustive_search(instance.experiment, instance.stack, pricer, &stop);
  EXPECT_FALSE(result.complete);
  EXPECT_FALSE(result.best.has_value());
}

}  // namespace
}  // namespace planner
