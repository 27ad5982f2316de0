#include "runtime/mesh/shard_scope.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/mesh/rank_layout.h"

namespace runtime {
namespace {

using Groups = std::vector<std::vector<std::int64_t>>;

specs::Placement placement(std::int64_t tensor, std::int64_t data,
                           specs::AxisOrder order = specs::default_axis_order) {
  specs::RegularPlacement regular;
  regular.tensor = tensor;
  regular.data = data;
  regular.order = order;
  regular.zero = {.stage = 2, .scope = specs::ShardScope::node};
  return specs::regular_placement(regular, 2);
}

specs::RankMapping nodes_of(std::int64_t ranks_per_node, std::int64_t ranks) {
  specs::RankMapping mapping;
  mapping.ranges = {{.first_rank = 0, .ranks = ranks, .ranks_per_node = ranks_per_node}};
  return mapping;
}

TEST(ShardScope, ANodeHoldsItsDevicesOverTheTensorDegree) {
  EXPECT_EQ(replicas_in_node(placement(1, 8), nodes_of(4, 8)), 4);
  EXPECT_EQ(replicas_in_node(placement(2, 4), nodes_of(4, 8)), 2);
  EXPECT_EQ(replicas_in_node(placement(4, 2), nodes_of(4, 8)), 1);
  EXPECT_EQ(replicas_in_node(placement(1, 8), nodes_of(8, 8)), 8);
}

TEST(ShardScope, NodesThatHoldUnequalNumbersHaveNone) {
  EXPECT_EQ(replicas_in_node(placement(2, 6), nodes_of(3, 12)), std::nullopt);
  EXPECT_EQ(replicas_in_node(placement(1, 6), nodes_of(4, 6)), std::nullopt);
}

TEST(ShardScope, ShardGroupsAreNodesAndReplicasHoldTheSameShard) {
  const specs::Placement within = with_shard_ranks(placement(2, 4), nodes_of(4, 8));
  EXPECT_EQ(groups_of(within, MeshGroup::shard), (Groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}}));
  EXPECT_EQ(groups_of(within, MeshGroup::replica), (Groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
}

TEST(ShardScope, WithoutNodesOneGroupHoldsAllShards) {
  specs::Placement world = placement(2, 4);
  for (specs::PipelineStage& stage : world.stages) stage.zero.scope = specs::ShardScope::world;
  world = with_shard_ranks(world, nodes_of(4, 8));
  EXPECT_EQ(groups_of(world, MeshGroup::shard), groups_of(world, MeshGroup::gradient));
  EXPECT_EQ(groups_of(world, MeshGroup::replica).size(), 8U);
}

}  // namespace
}  // namespace runtime
