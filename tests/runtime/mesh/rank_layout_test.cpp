#include "runtime/mesh/rank_layout.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "specs/plan/placement.h"

namespace runtime {
namespace {

specs::Placement placement(std::int64_t tensor, std::int64_t pipeline, std::int64_t data,
                           std::int64_t context = 1, specs::AxisOrder order = specs::default_axis_order,
                           std::int64_t virtual_stages = 1) {
  specs::RegularPlacement regular;
  regular.tensor = tensor;
  regular.pipeline = pipeline;
  regular.data = data;
  regular.context = context;
  regular.order = order;
  regular.virtual_stages = virtual_stages;
  if (virtual_stages > 1) regular.schedule = specs::ScheduleKind::interleaved;
  return specs::regular_placement(regular, pipeline * virtual_stages);
}

std::vector<std::int64_t> all_ranks(std::int64_t world) {
  std::vector<std::int64_t> ranks(static_cast<std::size_t>(world));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

TEST(RankLayout, CoordinatesAndRanksAreInverseForEveryFactorizationUpTo64) {
  int placements = 0;
  for (std::int64_t world = 1; world <= 64; ++world)
    for (std::int64_t t = 1; t <= world; ++t)
      for (std::int64_t p = 1; world % t == 0 && p <= world / t; ++p)
        for (std::int64_t c = 1; (world / t) % p == 0 && c <= world / t / p; ++c) {
          if ((world / t / p) % c != 0) continue;
          const specs::Placement point = placement(t, p, world / t / p / c, c);
          ++placements;
          for (std::int64_t rank = 0; rank < world; ++rank)
            ASSERT_EQ(rank_at(point, coordinates_of(point, rank)), rank) << t << " " << p << " " << c;
        }
  EXPECT_GT(placements, 700);
}

TEST(RankLayout, EveryGroupKindTilesTheWorldOnceInEveryAxisOrder) {
  specs::AxisOrder order = specs::default_axis_order;
  std::sort(order.begin(), order.end());
  int orders = 0;
  do {
    ++orders;
    const specs::Placement point = placement(2, 2, 3, 2, order);
    for (const auto& [kind, name] : specs::EnumNames<MeshGroup>::names) {
      std::vector<std::int64_t> seen;
      for (const auto& group : groups_of(point, kind)) seen.insert(seen.end(), group.begin(), group.end());
      std::sort(seen.begin(), seen.end());
      EXPECT_EQ(seen, all_ranks(24)) << name;
    }
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_EQ(orders, 24);
}

using Groups = std::vector<std::vector<std::int64_t>>;

TEST(RankLayout, SixteenRanksInTheUsualOrderGiveTheUsualTable) {
  const specs::Placement point = placement(2, 4, 2);
  EXPECT_EQ(groups_of(point, MeshGroup::tensor),
            (Groups{{0, 1}, {2, 3}, {4, 5}, {6, 7}, {8, 9}, {10, 11}, {12, 13}, {14, 15}}));
  EXPECT_EQ(groups_of(point, MeshGroup::data),
            (Groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}, {8, 10}, {9, 11}, {12, 14}, {13, 15}}));
  EXPECT_EQ(groups_of(point, MeshGroup::pipeline),
            (Groups{{0, 4, 8, 12}, {1, 5, 9, 13}, {2, 6, 10, 14}, {3, 7, 11, 15}}));
  EXPECT_EQ(groups_of(point, MeshGroup::embedding), (Groups{{0, 12}, {1, 13}, {2, 14}, {3, 15}}));
  EXPECT_EQ(groups_of(point, MeshGroup::model),
            (Groups{{0, 1, 4, 5, 8, 9, 12, 13}, {2, 3, 6, 7, 10, 11, 14, 15}}));
  EXPECT_EQ(groups_of(point, MeshGroup::stage),
            (Groups{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10, 11}, {12, 13, 14, 15}}));
  EXPECT_EQ(groups_of(point, MeshGroup::context).size(), 16U);
}

TEST(RankLayout, PipelineInsideDataKeepsNeighbouringStagesOnNeighbouringRanks) {
  const specs::AxisOrder order{specs::MeshAxis::tensor, specs::MeshAxis::context, specs::MeshAxis::pipeline,
                               specs::MeshAxis::data};
  const specs::Placement point = placement(2, 2, 2, 1, order);
  EXPECT_EQ(groups_of(point, MeshGroup::pipeline), (Groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}}));
  EXPECT_EQ(groups_of(point, MeshGroup::data), (Groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
}

TEST(RankLayout, InterleavedStagesGoRoundThePipelineRanks) {
  const specs::Placement point = placement(1, 2, 1, 1, specs::default_axis_order, 3);
  EXPECT_EQ(stages_of(point, 0), (std::vector<std::int64_t>{0, 2, 4}));
  EXPECT_EQ(stages_of(point, 1), (std::vector<std::int64_t>{1, 3, 5}));
}

}  // namespace
}  // namespace runtime
