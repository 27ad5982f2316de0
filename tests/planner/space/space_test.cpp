#include "planner/space/space.h"

#include <map>
#include <random>
#include <set>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/space/written_out_space.h"
#include "specs/language/catalog.h"
#include "tests/planner/small_experiments.h"

namespace planner {
namespace {

using specs::Recomputation;
using specs::RegularPlacement;
using specs::ScheduleKind;
using testing::able_stack;
using ::testing::Contains;
using ::testing::HasSubstr;
using testing::small_experiment;

/// A candidate as a tuple that orders.
using Key = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t,
                       int, std::int64_t, bool, int, std::int64_t, int>;

Key key_of(const RegularPlacement& placement) {
  return {placement.tensor,
          placement.context,
          placement.pipeline,
          placement.data,
          placement.micro_batch,
          placement.accumulation,
          static_cast<int>(placement.schedule),
          placement.virtual_stages,
          placement.sequence_parallel,
          static_cast<int>(placement.recomputation),
          placement.zero.stage,
          static_cast<int>(placement.zero.scope)};
}

std::multiset<Key> enumerated(const Space& space) {
  std::multiset<Key> keys;
  for (const MeshSpace& mesh : space.meshes())
    space.for_each(mesh, [&](const RegularPlacement& placement) { keys.insert(key_of(placement)); });
  return keys;
}

bool in(const std::vector<std::int64_t>& list, std::int64_t value) {
  return list.empty() || std::find(list.begin(), list.end(), value) != list.end();
}

/// The space written out as the rules read, over a box of integers, for dense models on a stack that can do
/// everything. Shares no code with the planner.
std::set<Key> written_out(const specs::Experiment& experiment, std::int64_t devices) {
  std::set<Key> keys;
  const auto& search = experiment.search;
  const std::int64_t batch = experiment.training.global_batch, layers = experiment.model.layers;
  const std::int64_t per_node = experiment.cluster.groups[0].node.devices;
  for (std::int64_t t = 1; t <= devices; ++t)
    for (std::int64_t c = 1; c <= devices; ++c)
      for (std::int64_t p = 1; p <= devices; ++p)
        for (std::int64_t d = 1; d <= devices; ++d) {
          if (t * c * p * d != devices || batch % d != 0 || p > layers) continue;
          if (experiment.model.attention.heads % t != 0) continue;
          if (c > 1 && experiment.training.sequence_length % (2 * c) != 0) continue;
          if (!search.uneven_stages && layers % p != 0) continue;
          if (!in(search.tensor, t) || !in(search.context, c) || !in(search.pipeline, p) ||
              !in(search.data, d))
            continue;
          for (std::int64_t b = 1; b <= batch; ++b)
            for (std::int64_t m = 1; m <= batch; ++m) {
              if (b * m * d != batch || !in(search.micro_batch, b)) continue;
              for (int kind = 0; kind < 3; ++kind)
                for (std::int64_t v = 1; v <= layers; ++v) {
                  if (p == 1 && (kind != 1 || v != 1)) continue;
                  if (kind < 2 && v != 1) continue;
                  if (kind == 2 && (v < 2 || p * v > layers)) continue;
                  if (kind == 2 && layers % (p * v) != 0) continue;
                  if (p > 1 && !in(search.virtual_stages, v)) continue;
                  for (int s = 0; s < (t > 1 && experiment.training.sequence_length / c % t == 0 ? 2 : 1);
                       ++s)
                    for (int r = 0; r < 3; ++r)
                      for (std::int64_t z = 0; z < 4; ++z)
                        for (int scope = 0; scope < 2; ++scope) {
                          if (d * c == 1 && z > 0) continue;
                          if (d * c > 1 && !in(search.zero_stage, z)) continue;
                          if (p > 1 && z > 1) continue;
                          const std::int64_t replicas_in_node = per_node / t;
                          const bool scope_matters = z > 0 && replicas_in_node > 1 &&
                                                     replicas_in_node < d * c && per_node % t == 0 &&
                                                     d * c % replicas_in_node == 0;
                          if (scope == 1 && !scope_matters) continue;
                          keys.insert({t, c, p, d, b, m, kind, v, s == 1, r, z, scope});
                        }
                }
            }
        }
  return keys;
}

TEST(Space, ListsEachLegalCandidateOnceOnRandomSmallInstances) {
  std::mt19937 random(20);
  const auto pick = [&](std::initializer_list<std::int64_t> values) {
    return *(values.begin() + std::uniform_int_distribution<std::size_t>(0, values.size() - 1)(random));
  };
  int compared = 0;
  for (int round = 0; round < 60; ++round) {
    const std::int64_t devices = pick({1, 2, 3, 4, 6, 8, 12, 16});
    specs::Experiment experiment =
        small_experiment(devices, pick({1, 2, 3, 5, 8}), pick({1, 2, 4, 6}), pick({1, 2, 6, 8, 12, 16}));
    if (round % 3 == 0) experiment.search.uneven_stages = false;
    if (round % 4 == 1) experiment.search.tensor = {1, 2};
    if (round % 5 == 1) experiment.search.micro_batch = {1, 4};
    if (round % 5 == 2) experiment.search.zero_stage = {1};
    if (round % 6 == 5) experiment.search.virtual_stages = {1, 2};
    const specs::StackSpec stack = able_stack();
    const std::set<Key> correct = written_out(experiment, devices);
    if (correct.empty()) continue;
    const Space space(experiment, stack);
    const std::multiset<Key> result = enumerated(space);
    std::vector<Key> missing, unexpected;
    std::set_difference(correct.begin(), correct.end(), result.begin(), result.end(),
                        std::back_inserter(missing));
    std::set_difference(result.begin(), result.end(), correct.begin(), correct.end(),
                        std::back_inserter(unexpected));
    ASSERT_TRUE(missing.empty()) << "round " << round << ", first of " << missing.size() << ": "
                                 << ::testing::PrintToString(missing.front());
    ASSERT_TRUE(unexpected.empty()) << "round " << round << ", first of " << unexpected.size() << ": "
                                    << ::testing::PrintToString(unexpected.front());
    ASSERT_EQ(space.outer_points(), correct.size()) << "round " << round;
    ++compared;
  }
  EXPECT_GT(compared, 40);
}

TEST(Space, EachCandidateObeysTheRulesThatWhyNotAnswersWith) {
  const specs::Experiment experiment = small_experiment(8, 4, 4, 8);
  const specs::StackSpec stack = able_stack();
  const Space space(experiment, stack);
  for (const MeshSpace& mesh : space.meshes())
    space.for_each(mesh, [&](const RegularPlacement& placement) {
      EXPECT_EQ(space.legality().placement(placement), std::nullopt) << describe(mesh_of(placement));
    });
}

TEST(Space, UsesTheLargestLegalPartWhereNoMeshUsesAllDevices) {
  // Data divides 8, tensor divides 2 and there is one layer: of 12 devices 8 or 4 · 2 at most.
  specs::Experiment experiment = small_experiment(12, 1, 2, 4);
  experiment.search.context = {1};
  const specs::StackSpec stack = able_stack();
  const Space space(experiment, stack);
  EXPECT_EQ(space.largest_world_size(), 8);
}

TEST(Space, IdleNodesAllowSmallerWorldsBesideTheWholeCluster) {
  specs::Experiment experiment = small_experiment(8, 4, 4, 8);
  const specs::StackSpec stack = able_stack();
  EXPECT_FALSE(Space(experiment, stack).contains_world_size(4));
  experiment.search.idle_nodes = 1;
  const Space space(experiment, stack);
  EXPECT_TRUE(space.contains_world_size(8));
  EXPECT_TRUE(space.contains_world_size(4));
}

TEST(Space, TensorDegreeOfAnyDivisorOfTheHeadsIsLegal) {
  specs::Experiment experiment = small_experiment(12, 4, 6, 8);
  experiment.search.tensor = {3};
  const specs::StackSpec stack = able_stack();
  const Space space(experiment, stack);
  ASSERT_FALSE(space.meshes().empty());
  for (const MeshSpace& mesh : space.meshes()) EXPECT_EQ(mesh.mesh.tensor, 3);
  EXPECT_EQ(space.largest_world_size(), 12);
}

TEST(Space, UnevenStagesAreNotRefused) {
  specs::Experiment experiment = small_experiment(7, 30, 4, 8);
  experiment.search.pipeline = {7};
  const specs::StackSpec stack = able_stack();
  EXPECT_GT(Space(experiment, stack).outer_points(), 0u);
  experiment.search.uneven_stages = false;
  EXPECT_EQ(Space(experiment, stack).outer_points(), 0u);
}

TEST(Space, NamesWhatTheStackCannotRun) {
  const specs::Experiment experiment = small_experiment(8, 4, 4, 8);
  specs::StackSpec stack = able_stack();
  stack.schedules = {ScheduleKind::one_forward_one_backward};
  const Space space(experiment, stack);
  bool seen = false;
  for (const Dimension& dimension : space.dimensions()) {
    if (dimension.name != "schedule") continue;
    seen = true;
    EXPECT_THAT(dimension.values, ::testing::ElementsAre("1f1b"));
    EXPECT_THAT(dimension.excluded, Contains(HasSubstr("interleaved: the stack \"able\" has no schedule")));
  }
  EXPECT_TRUE(seen);
}

TEST(Space, PutsTheBucketsOfTheStackIntoEveryCandidateAsTheWrittenOutSpaceDoes) {
  specs::Experiment experiment = small_experiment(16, 4, 4, 64);
  for (const std::string& name : specs::catalog_names(specs::CatalogKind::stack))
    for (const std::int64_t named : {0, 123}) {
      experiment.training.gradient_bucket_elements = named;
      const specs::StackSpec stack = *specs::catalog_stack(name);
      const Space space(experiment, stack);
      std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, specs::BucketSizes> written_out;
      const WrittenOutSpace written(experiment, stack);
      for (const WrittenOutMesh& mesh : written.meshes())
        written_out[{mesh.corner.tensor, mesh.corner.context, mesh.corner.pipeline}] = mesh.corner.buckets;
      ASSERT_FALSE(space.meshes().empty()) << name;
      for (const MeshSpace& mesh : space.meshes()) {
        EXPECT_EQ(mesh.buckets, (written_out[{mesh.mesh.tensor, mesh.mesh.context, mesh.mesh.pipeline}]))
            << name;
        const bool alone = mesh.mesh.data * mesh.mesh.context == 1;
        if (named > 0) {
          EXPECT_EQ(mesh.buckets.gradient_bucket_bytes, alone ? 0 : 4 * named) << name;
        }
      }
    }
}

TEST(Legality, RefusalsCarryTheFailingEquation) {
  const specs::Experiment experiment = small_experiment(8, 4, 4, 8);
  const specs::StackSpec stack = able_stack();
  const Legality legality(experiment, stack);
  EXPECT_EQ(legality.tensor(3)->equation, "4 heads % tensor 3 = 1");
  EXPECT_EQ(legality.tensor(3)->constraint, Constraint::model_shape);
  EXPECT_EQ(legality.pipeline(5)->equation, "pipeline 5 stages for 4 layers");
  EXPECT_EQ(legality.data(3)->equation, "8 sequences % data 3 = 2");
  EXPECT_EQ(legality.zero({.pipeline = 2, .data = 2}, {2, specs::ShardScope::world})->constraint,
            Constraint::software_stack);
}

TEST(Legality, AReplicaAloneIsShardedOnlyToOffloadItsParameters) {
  const specs::Experiment experiment = small_experiment(8, 4, 4, 8);
  specs::StackSpec stack = able_stack();
  stack.parameter_offload = {specs::OffloadDevice::none, specs::OffloadDevice::cpu};
  EXPECT_FALSE(Legality(experiment, stack).zero({}, {3, specs::ShardScope::world}));
  EXPECT_TRUE(Legality(experiment, stack).zero({}, {1, specs::ShardScope::world}));
  stack.parameter_offload = {specs::OffloadDevice::none};
  EXPECT_EQ(Legality(experiment, stack).zero({}, {3, specs::ShardScope::world})->constraint,
            Constraint::device_count);
}

// Megatron-Core r0.12 offloads the activations of whole layers, and refuses that beside a pipeline.
TEST(Space, MegatronCoreOffloadsNoActivationsBesideAPipelineUnlessTheBuildCan) {
  specs::Experiment experiment = testing::small_experiment(8, 8, 4, 8);
  experiment.training.stack = "megatron-core";
  const auto offloads_beside_a_pipeline = [&] {
    const auto stack = specs::stack_of(experiment.training);
    const Space space(experiment, *stack);
    bool alone = false, beside = false;
    for (const MeshSpace& mesh : space.meshes())
      space.for_each(mesh, [&](const specs::RegularPlacement& point) {
        if (point.offload.activations.device == specs::OffloadDevice::none) return;
        (point.pipeline > 1 ? beside : alone) = true;
      });
    EXPECT_TRUE(alone);
    specs::RegularPlacement point;
    point.pipeline = 2;
    point.data = 4;
    point.accumulation = 2;
    point.offload.activations = {specs::OffloadDevice::cpu, 1};
    EXPECT_EQ(space.legality().placement(point).has_value(), !beside);
    return beside;
  };
  EXPECT_FALSE(offloads_beside_a_pipeline());
  experiment.training.stack_features = {"fine_grained_offload"};
  EXPECT_TRUE(offloads_beside_a_pipeline());
}

}  // namespace
}  // namespace planner
