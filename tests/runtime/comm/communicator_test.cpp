#include "runtime/comm/communicator.h"

#include <chrono>
#include <string>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/runtime/pool_fixture.h"

namespace runtime {
namespace {

class CommunicatorTest : public PoolFixture<4> {};

TEST_F(CommunicatorTest, EveryCollectiveIsExactInEveryDtypeOnTwoThreeAndFourRanks) {
  for (const std::int64_t ranks : {2, 3, 4})
    for (const std::string& wrong : values("every_collective", "", ranks)) EXPECT_EQ(wrong, "");
}

TEST_F(CommunicatorTest, HoldsNoMemoryOnceWaitedFor) {
  for (const std::string& times : values("memory_after_wait", "", 4)) EXPECT_EQ(times, "0");
}

TEST_F(CommunicatorTest, MessagesMatchByTagWhateverTheOrderOfReceives) {
  for (const std::string& wrong : values("messages_out_of_order", "", 4)) EXPECT_EQ(wrong, "");
}

TEST_F(CommunicatorTest, TrafficCountsPayloadAndWireBytesByOperationAndDtype) {
  const std::string correct =
      "world all_reduce Float 1 400 600\n"
      "world all_reduce BFloat16 1 200 300\n"
      "world reduce_scatter Float 1 400 300\n"
      "traced 3";
  for (const std::string& result : values("traffic_of_a_step", "", 4)) EXPECT_EQ(result, correct);
}

TEST_F(CommunicatorTest, FaultInjectionLeavesOutExactlyTheChosenCollective) {
  for (const std::string& result : values("skipped_all_reduce", "", 2))
    EXPECT_EQ(result, "2.000000 1.000000");
}

TEST_F(CommunicatorTest, AnAbsentPeerIsATimeoutThatNamesGroupOperationSequenceAndRanks) {
  WorkerPool impatient(2, std::chrono::milliseconds(700));
  const auto results = impatient.run("absent_peer", "", 2);
  ASSERT_TRUE(results[0].ok()) << results[0].error;
  EXPECT_EQ(results[0].value.find("timeout: all_reduce number 1 of group world (ranks 0,1) timed out"), 0U)
      << results[0].value;
}

TEST_F(CommunicatorTest, APeerThatDiesIsReportedAndThePoolStartsAnew) {
  WorkerPool doomed(2);
  const auto results = doomed.run("die", "", 2);
  EXPECT_NE(results[0].error.find("lost a peer"), std::string::npos) << results[0].error;
  EXPECT_EQ(results[1].error, "the worker ended with exit code 7");
  EXPECT_TRUE(doomed.run("every_collective", "", 2)[0].ok());
}

TEST_F(CommunicatorTest, AMeshConnectsEveryAxisAndReusesGroupsOfTheSameRanks) {
  // Columns: tensor, data, pipeline, embedding, model, world.
  const auto tensor_pipeline = values("mesh_sums", "2 2 1", 4);
  EXPECT_EQ(tensor_pipeline[0].substr(0, 12), "1 0 2 2 6 6 ");
  EXPECT_EQ(tensor_pipeline[3].substr(0, 12), "5 3 4 4 6 6 ");
  const auto pipeline_only = values("mesh_sums", "1 4 1", 4);
  EXPECT_EQ(pipeline_only[0].substr(0, 12), "0 0 6 3 6 6 ");
  EXPECT_EQ(pipeline_only[1].substr(0, 12), "1 1 6 1 6 6 ");
  const auto again = values("mesh_sums", "1 4 1", 4);
  EXPECT_EQ(again, pipeline_only);
}

TEST(GroupOfOne, DoesNothingAndCopiesOnlyWhereOutputIsApart) {
  const Communicator alone("tensor", 5);
  const at::Tensor tensor = at::arange(4, at::kFloat);
  alone.all_reduce(tensor);
  EXPECT_TRUE(at::equal(tensor, at::arange(4, at::kFloat)));
  at::Tensor output = at::zeros({4}, at::kFloat);
  alone.all_gather_into(output, tensor);
  EXPECT_TRUE(at::equal(output, tensor));
  EXPECT_EQ(alone.ranks(), std::vector<std::int64_t>{5});
  EXPECT_FALSE(alone.all_reduce_async(tensor).pending());
}

}  // namespace

}  // namespace runtime
