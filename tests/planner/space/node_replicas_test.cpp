#include "planner/space/node_replicas.h"

#include <gtest/gtest.h>

namespace planner {
namespace {

MeshDegrees mesh(std::int64_t tensor, std::int64_t pipeline, std::int64_t data) {
  MeshDegrees degrees;
  degrees.tensor = tensor;
  degrees.pipeline = pipeline;
  degrees.data = data;
  return degrees;
}

bool equal(const MeshDegrees& degrees, const char* order, std::int64_t devices) {
  return nodes_hold_equal_replicas(degrees, *specs::axis_order_from(order), devices);
}

TEST(NodeReplicas, OfThreeOverNodesOfTwoAreUnequal) {
  EXPECT_FALSE(equal(mesh(1, 2, 3), "tp-cp-dp-pp", 2));
  EXPECT_TRUE(equal(mesh(1, 2, 4), "tp-cp-dp-pp", 2));
  EXPECT_TRUE(equal(mesh(2, 1, 3), "tp-cp-dp-pp", 2)) << "one in each node";
}

TEST(NodeReplicas, FollowTheOrderOfTheAxes) {
  EXPECT_TRUE(equal(mesh(1, 3, 8), "tp-cp-dp-pp", 4));
  EXPECT_FALSE(equal(mesh(1, 3, 8), "tp-cp-pp-dp", 4)) << "ranks 0 and 3, then 6, then 9";
  EXPECT_TRUE(equal(mesh(1, 2, 8), "tp-cp-pp-dp", 4));
  EXPECT_TRUE(equal(mesh(1, 5, 8), "tp-cp-pp-dp", 4)) << "five ranks apart: none shares a node";
}

}  // namespace
}  // namespace planner
