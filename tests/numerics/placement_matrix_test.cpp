#include "tests/numerics/placement_matrix.h"

#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/capabilities.h"
#include "runtime/train/trainer.h"
#include "specs/plan/placement_check.h"
#include "specs/schedule/generate.h"
#include "specs/schedule/verify.h"

namespace runtime::numerics {
namespace {

using testing::IsEmpty;

/// One node of as many devices as ranks.
specs::ClusterSpec cluster_of(const TrainingCase& training) {
  specs::ClusterSpec cluster;
  cluster.groups.emplace_back();
  cluster.groups.front().nodes = 1;
  cluster.groups.front().node.devices = training.ranks();
  return cluster;
}

std::vector<TrainingCase> default_placements() {
  std::vector<TrainingCase> all = single_placements(capabilities());
  const std::vector<TrainingCase> pairs = paired_placements(capabilities(), 1);
  all.insert(all.end(), pairs.begin(), pairs.end());
  return all;
}

TEST(PlacementMatrix, HasAtLeastTwoHundredDifferentPlacements) {
  std::set<std::string> names;
  for (const TrainingCase& training : default_placements()) names.insert(training.name());
  EXPECT_GE(names.size(), 200);
}

/// Of the generators that no plan asks for, all but that.
TEST(PlacementMatrix, SchedulesThatAreGeneratorsAloneAreSound) {
  for (const TrainingCase& training : generator_only_placements(capabilities())) {
    SCOPED_TRACE(training.name());
    EXPECT_LE(training.ranks(), most_ranks);
    EXPECT_FALSE(specs::verify(schedule_of(training)).has_errors());
  }
}

TEST(PlacementMatrix, EveryPlacementIsLegalAndOneThatTheRuntimeExecutes) {
  for (const TrainingCase& training : default_placements()) {
    SCOPED_TRACE(training.name());
    const TrainerSpec spec{model_of(training), training_of(training), placement_of(training),
                           schedule_of(training)};
    EXPECT_LE(training.ranks(), most_ranks);
    EXPECT_THAT(capability_refusals(spec.placement, spec.training), IsEmpty());
    EXPECT_THAT(training_refusals(spec), IsEmpty());
    const auto broken =
        specs::check_placement(spec.placement, spec.model, cluster_of(training), spec.training);
    EXPECT_FALSE(broken.has_errors()) << broken.render();
    const auto unsound = specs::verify(spec.schedule);
    EXPECT_FALSE(unsound.has_errors()) << unsound.render();
  }
}

TEST(PlacementMatrix, GrowsWithTheTableOfCapabilities) {
  specs::StackSpec more = capabilities();
  more.zero_stages = {0, 1, 2, 3};
  more.shard_scopes = {specs::ShardScope::world, specs::ShardScope::node};
  more.optimizer_offload = {specs::OffloadDevice::none, specs::OffloadDevice::cpu};
  more.recomputations = {specs::Recomputation::none, specs::Recomputation::full,
                         specs::Recomputation::selective};
  std::set<std::int64_t> zero_stages;
  bool node_scope = false, offloaded = false, selective = false;
  for (const TrainingCase& training : paired_placements(more, 1)) {
    zero_stages.insert(training.zero.stage);
    node_scope |= training.zero.scope == specs::ShardScope::node;
    offloaded |= training.offload.optimizer.device == specs::OffloadDevice::cpu;
    selective |= training.recomputation == specs::Recomputation::selective;
  }
  EXPECT_EQ(zero_stages, (std::set<std::int64_t>{0, 1, 2, 3}));
  EXPECT_TRUE(node_scope && offloaded && selective);
}

}  // namespace
}  // namespace runtime::numerics
