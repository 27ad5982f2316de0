#include "specs/plan/rank_mapping.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "specs/plan/rank_mapping_check.h"

namespace specs {
namespace {

std::vector<AxisOrder> all_orders() {
  AxisOrder order = default_axis_order;
  std::sort(order.begin(), order.end());
  std::vector<AxisOrder> orders;
  do orders.push_back(order);
  while (std::next_permutation(order.begin(), order.end()));
  return orders;
}

/// Calls `visit` for every tensor × context × pipeline × data = world and every axis order.
template <class Visit>
void for_each_factorization(std::int64_t world, Visit visit) {
  for (std::int64_t tensor = 1; tensor <= world; ++tensor)
    for (std::int64_t context = 1; tensor * context <= world; ++context)
      for (std::int64_t pipeline = 1; tensor * context * pipeline <= world; ++pipeline) {
        if (world % (tensor * context * pipeline) != 0) continue;
        for (const AxisOrder& order : all_orders())
          visit(RegularPlacement{.tensor = tensor,
                                 .context = context,
                                 .pipeline = pipeline,
                                 .data = world / (tensor * context * pipeline),
                                 .order = order});
      }
}

/// The rank of four coordinates, straight from the meaning of an axis order.
std::int64_t rank_by_definition(const RegularPlacement& regular, std::int64_t pipeline_rank,
                                const RankCoordinates& at) {
  std::int64_t rank = 0;
  std::int64_t weight = 1;
  for (MeshAxis axis : regular.order) {
    const auto [degree, coordinate] = axis == MeshAxis::tensor    ? std::pair(regular.tensor, at.tensor)
                                      : axis == MeshAxis::context ? std::pair(regular.context, at.context)
                                      : axis == MeshAxis::data    ? std::pair(regular.data, at.data)
                                                               : std::pair(regular.pipeline, pipeline_rank);
    rank += weight * coordinate;
    weight *= degree;
  }
  return rank;
}

TEST(RankMapping, CoordinatesAndRanksAreInverseForEveryFactorizationUpTo64) {
  for (std::int64_t world = 1; world <= 64; ++world)
    for_each_factorization(world, [&](const RegularPlacement& regular) {
      const Placement placement = regular_placement(regular, regular.pipeline);
      std::vector<bool> seen(static_cast<std::size_t>(world));
      for (const PipelineStage& stage : placement.stages)
        for (std::int64_t index = 0; index < stage.devices.size(); ++index) {
          const RankCoordinates at = coordinates_of(stage.mesh, index);
          const std::int64_t rank = stage.devices.rank(index);
          ASSERT_EQ(index_of(stage.mesh, at), index);
          ASSERT_EQ(index_in(stage.devices, rank), index);
          ASSERT_EQ(rank, rank_by_definition(regular, stage.pipeline_rank, at)) << to_string(regular.order);
          ASSERT_EQ(pipeline_rank_of(placement, rank), stage.pipeline_rank);
          ASSERT_FALSE(seen[static_cast<std::size_t>(rank)]);
          seen[static_cast<std::size_t>(rank)] = true;
        }
      ASSERT_EQ(std::count(seen.begin(), seen.end(), true), world);
    });
}

TEST(RankMapping, GroupsOfEachAxisTileTheWorld) {
  for (std::int64_t world : {8, 12, 24})
    for_each_factorization(world, [&](const RegularPlacement& regular) {
      const Placement placement = regular_placement(regular, regular.pipeline);
      for (const PipelineStage& stage : placement.stages)
        for (MeshAxis axis : {MeshAxis::tensor, MeshAxis::context, MeshAxis::data})
          for (std::int64_t index = 0; index < stage.devices.size(); ++index) {
            const std::int64_t rank = stage.devices.rank(index);
            const std::vector<std::int64_t> group = axis_group(stage, axis, rank);
            ASSERT_EQ(std::count(group.begin(), group.end(), rank), 1);
            for (std::int64_t peer : group) ASSERT_EQ(axis_group(stage, axis, peer), group);
          }
      for (std::int64_t rank = 0; rank < world; ++rank) {
        const std::vector<std::int64_t> group = pipeline_group(placement, rank);
        ASSERT_EQ(static_cast<std::int64_t>(group.size()), regular.pipeline);
        ASSERT_EQ(group[static_cast<std::size_t>(*pipeline_rank_of(placement, rank))], rank);
      }
    });
}

TEST(RankMapping, ExpertGroupsTileAStage) {
  const PipelineStage stage{.devices = {.first = 16, .block = 16},
                            .mesh = {.tensor = 2, .data = 8, .expert = 4, .expert_tensor = 2}};
  EXPECT_EQ(expert_axis_group(stage, ExpertAxis::expert_tensor, 18), (std::vector<std::int64_t>{18, 19}));
  EXPECT_EQ(expert_axis_group(stage, ExpertAxis::expert, 18), (std::vector<std::int64_t>{16, 18, 20, 22}));
  EXPECT_EQ(expert_axis_group(stage, ExpertAxis::expert_data, 18), (std::vector<std::int64_t>{18, 26}));
  EXPECT_EQ(coordinates_of(stage.mesh, 11),
            (RankCoordinates{
                .tensor = 1, .context = 0, .data = 5, .expert_tensor = 1, .expert = 1, .expert_data = 1}));
}

TEST(RankMapping, AnswersNothingForAStranger) {
  const Placement placement = regular_placement({.tensor = 2, .pipeline = 2}, 2);
  EXPECT_EQ(pipeline_rank_of(placement, 4), std::nullopt);
  EXPECT_EQ(pipeline_rank_of(placement, -1), std::nullopt);
  EXPECT_TRUE(axis_group(placement.stages[0], MeshAxis::tensor, 3).empty());
  EXPECT_TRUE(pipeline_group(placement, 9).empty());
}

ClusterSpec cluster_of(const std::vector<std::pair<std::int64_t, std::int64_t>>& nodes_and_devices) {
  ClusterSpec cluster;
  for (const auto& [nodes, devices] : nodes_and_devices) {
    ClusterGroup group;
    group.nodes = nodes;
    group.node.devices = devices;
    cluster.groups.push_back(group);
  }
  return cluster;
}

TEST(RankMapping, FillsNodesInOrder) {
  const ClusterSpec cluster = cluster_of({{4, 8}});
  const Placement placement = regular_placement({.tensor = 8, .pipeline = 3}, 3);
  const RankMapping mapping = consecutive_mapping(placement, cluster);
  EXPECT_EQ(mapping.ranges.size(), 1U);
  EXPECT_EQ(locate(mapping, 0), (DeviceLocation{0, 0, 0}));
  EXPECT_EQ(locate(mapping, 23), (DeviceLocation{0, 2, 7}));
  EXPECT_EQ(locate(mapping, 24), std::nullopt);
  EXPECT_TRUE(rank_mapping_violations(mapping, placement, cluster).empty());
}

TEST(RankMapping, PutsStagesOnTheGroupsTheyAskFor) {
  const ClusterSpec cluster = cluster_of({{1, 4}, {2, 2}});
  Placement placement = regular_placement({.tensor = 2, .pipeline = 4}, 4);
  placement.stages[1].device_group = 1;
  placement.stages[2].device_group = 1;
  const RankMapping mapping = consecutive_mapping(placement, cluster);
  EXPECT_EQ(locate(mapping, 1), (DeviceLocation{0, 0, 1}));
  EXPECT_EQ(locate(mapping, 2), (DeviceLocation{1, 0, 0}));
  EXPECT_EQ(locate(mapping, 5), (DeviceLocation{1, 1, 1}));
  EXPECT_EQ(locate(mapping, 6), (DeviceLocation{0, 0, 2}));
  EXPECT_TRUE(rank_mapping_violations(mapping, placement, cluster).empty());
}

TEST(RankMappingCheck, NamesWhatIsWrong) {
  const ClusterSpec cluster = cluster_of({{2, 4}});
  const Placement placement = regular_placement({.tensor = 4, .data = 2}, 1);
  const auto violation = [&](const RankMapping& mapping) {
    const auto violations = rank_mapping_violations(mapping, placement, cluster);
    return violations.empty() ? "" : violations.front().field + " " + violations.front().message;
  };
  const HostRange whole{.ranks = 8, .ranks_per_node = 4};
  EXPECT_EQ(violation({.ranges = {whole}}), "");
  EXPECT_EQ(
      violation({.ranges = {whole},
                 .exceptions = {{.rank = 0, .node = 1, .device = 3}, {.rank = 7, .node = 0, .device = 0}}}),
      "");
  EXPECT_EQ(violation({}), " rank 0 has no device");
  EXPECT_EQ(violation({.ranges = {whole}, .exceptions = {{.rank = 0, .node = 1, .device = 3}}}),
            " ranks 0 and 7 have the same device");
  EXPECT_EQ(violation({.ranges = {whole}, .exceptions = {{.rank = 8}}}),
            "/exceptions/0 rank 8 of a world of 8");
  EXPECT_EQ(violation({.ranges = {whole}, .exceptions = {{.rank = 1, .node = 2}}}),
            "/exceptions/0 node 2, device 0 of 2 nodes with 4 devices");
  EXPECT_EQ(violation({.ranges = {{.ranks = 9, .ranks_per_node = 4}}}),
            "/ranges/0 ranks 0 to 8 of a world of 8");
  EXPECT_EQ(violation({.ranges = {{.ranks = 8, .ranks_per_node = 8}}}),
            "/ranges/0 8 ranks on nodes of 4 devices");
  EXPECT_EQ(violation({.ranges = {{.ranks = 8, .ranks_per_node = 2}}}),
            "/ranges/0 reaches node 2, the group has 2");
  EXPECT_EQ(violation({.ranges = {whole, whole}}), "/ranges/1 rank 0 stands in two ranges");
  EXPECT_EQ(violation({.ranges = {{.ranks = 8, .device_group = 1, .ranks_per_node = 4}}}),
            "/ranges/0 device_group 1 of a cluster with 1 groups");
}

}  // namespace
}  // namespace specs
