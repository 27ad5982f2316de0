#include "planner/exhaustive_search.h"

#include <map>
#include <random>

#include <gtest/gtest.h>

#include "planner/certificate.h"
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

std::vector<PricedCandidate> all_that_fit(const Space& space, const Pricer& pricer) {
  std::vector<PricedCandidate> fitting;
  for (const MeshSpace& mesh : space.meshes())
    mesh.for_each([&](const RegularPlacement& placement) {
      const Price price = pricer.price(placement);
      if (price.peak_device_bytes <= pricer.usable_device_bytes() &&
          price.peak_host_bytes_per_node <= pricer.usable_host_bytes())
        fitting.push_back({placement, price});
    });
  return fitting;
}

TEST(ExhaustiveSearch, FindsTheBestCandidateAndTheBestOfEachOtherMesh) {
  std::mt19937 random(7);
  int with_plan = 0;
  for (int round = 0; round < 100; ++round) {
    const Instance instance = random_instance(random);
    const Space space(instance.experiment, instance.stack);
    const ArbitraryPricer pricer(random());
    const SearchResult result = exhaustive_search(space, pricer);

    std::vector<PricedCandidate> fitting = all_that_fit(space, pricer);
    std::stable_sort(fitting.begin(), fitting.end(), [](const PricedCandidate& a, const PricedCandidate& b) {
      return std::pair(a.price.objective, a.price.peak_device_bytes) <
             std::pair(b.price.objective, b.price.peak_device_bytes);
    });
    ASSERT_EQ(result.best.has_value(), !fitting.empty());
    if (fitting.empty()) continue;
    ++with_plan;
    EXPECT_EQ(*result.best, fitting.front());
    std::vector<PricedCandidate> distinct;
    for (const PricedCandidate& candidate : fitting)
      if (std::none_of(distinct.begin(), distinct.end(), [&](const PricedCandidate& other) {
            return mesh_of(other.placement) == mesh_of(candidate.placement);
          }))
        distinct.push_back(candidate);
    distinct.erase(distinct.begin());
    if (distinct.size() > 10) distinct.resize(10);
    EXPECT_EQ(result.runners_up, distinct);
  }
  EXPECT_GT(with_plan, 60);
}

TEST(ExhaustiveSearch, RegionsTileTheSpace) {
  std::mt19937 random(11);
  for (int round = 0; round < 50; ++round) {
    const Instance instance = random_instance(random);
    const Space space(instance.experiment, instance.stack);
    const ArbitraryPricer pricer(random());
    const SearchResult result = exhaustive_search(space, pricer);
    EXPECT_EQ(result.priced() + result.infeasible(), space.candidates());
    EXPECT_EQ(result.priced(), all_that_fit(space, pricer).size());

    const specs::Certificate certificate = certificate_of(space, result, pricer);
    std::map<std::vector<std::string>, std::uint64_t> counted;
    for (const specs::CertificateRegion& region : certificate.regions) {
      std::vector<std::string> key;
      for (const specs::RegionDimension& dimension : region.dimensions) key.push_back(dimension.values.at(0));
      counted[key] += std::stoull(region.candidates);
    }
    for (const MeshSpace& space_of_mesh : space.meshes()) {
      const MeshDegrees& mesh = space_of_mesh.mesh;
      const std::vector<std::string> key{std::to_string(mesh.tensor), std::to_string(mesh.context),
                                         std::to_string(mesh.pipeline), std::to_string(mesh.data)};
      EXPECT_EQ(counted[key], space_of_mesh.candidates()) << describe(mesh);
    }
    EXPECT_EQ(counted.size(), space.meshes().size());
    EXPECT_EQ(certificate.space_candidates, std::to_string(space.candidates()));
    EXPECT_EQ(certificate.gap, 0);
    EXPECT_TRUE(certificate.complete);
  }
}

TEST(ExhaustiveSearch, TheNearestInfeasibleLacksTheFewestBytes) {
  const Instance instance{small_experiment(8, 4, 4, 8)};
  const Space space(instance.experiment, instance.stack);
  const ArbitraryPricer pricer(3);
  const SearchResult result = exhaustive_search(space, pricer);
  std::int64_t fewest = std::numeric_limits<std::int64_t>::max();
  for (const MeshSpace& mesh : space.meshes())
    mesh.for_each([&](const RegularPlacement& placement) {
      const Price price = pricer.price(placement);
      if (price.peak_device_bytes > pricer.usable_device_bytes())
        fewest = std::min(fewest, price.peak_device_bytes - pricer.usable_device_bytes());
      else if (price.peak_host_bytes_per_node > pricer.usable_host_bytes())
        fewest = std::min(fewest, price.peak_host_bytes_per_node - pricer.usable_host_bytes());
    });
  const Price nearest = result.nearest_infeasible(pricer)->price;
  const std::int64_t lacks = nearest.peak_device_bytes > pricer.usable_device_bytes()
                                 ? nearest.peak_device_bytes - pricer.usable_device_bytes()
                                 : nearest.peak_host_bytes_per_node - pricer.usable_host_bytes();
  EXPECT_EQ(lacks, fewest);
}

TEST(ExhaustiveSearch, AStoppedSearchSaysThatNothingIsProven) {
  const Instance instance{small_experiment(8, 4, 4, 8)};
  const Space space(instance.experiment, instance.stack);
  const ArbitraryPricer pricer(3);
  const std::atomic<bool> stop{true};
  const SearchResult result = exhaustive_search(space, pricer, &stop);
  EXPECT_FALSE(result.complete);
  EXPECT_EQ(result.priced(), 0u);
  EXPECT_FALSE(certificate_of(space, result, pricer).complete);
}

}  // namespace
}  // namespace planner
