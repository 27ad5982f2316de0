// Tests of the test: each deliberate defect must push a placement that is otherwise equal over the bars.
#include <functional>
#include <string>
#include <vector>

#include "tests/numerics/matrix_fixture.h"

namespace runtime::numerics {
namespace {

class FaultSwitch : public MatrixTest {
 protected:
  static TrainingCase placement(std::int64_t tensor, std::int64_t pipeline, std::int64_t data) {
    TrainingCase training;
    training.precision = specs::Precision::fp64;
    training.optimizer = specs::OptimizerKind::adamw;
    training.tensor = tensor;
    training.pipeline = pipeline;
    training.data = data;
    training.micro_batches = 4;
    return training;
  }

  /// The placement passes as it is, and fails with the defect.
  static void expect_noticed(TrainingCase training, const std::function<void(FaultSwitches&)>& defect) {
    expect_equal(training);
    defect(training.faults);
    const Differences found = differences(training, train(*pool_, training));
    const std::string line = describe(training, found);
    std::printf("with the defect: %s\n", line.c_str());
    EXPECT_FALSE(within(found, bars_for(training.precision))) << line;
  }
};

TEST_F(FaultSwitch, ALeftOutDataReductionIsNoticed) {
  expect_noticed(placement(1, 1, 2), [](FaultSwitches& faults) { faults.skip_data_reduction = true; });
}

TEST_F(FaultSwitch, ALeftOutSumOfNormGradientsOverTheTensorAxisIsNoticed) {
  TrainingCase training = placement(2, 1, 1);
  training.sequence_parallel = true;
  expect_noticed(training, [](FaultSwitches& faults) { faults.skip_partial_reduction = true; });
}

TEST_F(FaultSwitch, ALeftOutSumOfSharedKeyValueHeadsIsNoticed) {
  TrainingCase training = placement(4, 1, 1);
  training.model = TinyModel::llama;
  expect_noticed(training, [](FaultSwitches& faults) { faults.skip_partial_reduction = true; });
}

TEST_F(FaultSwitch, ALeftOutSumOfTiedTablesIsNoticed) {
  expect_noticed(placement(1, 2, 1), [](FaultSwitches& faults) { faults.skip_tied_reduction = true; });
}

TEST_F(FaultSwitch, AReplicatedNormWeightCountedTwiceIsNoticed) {
  expect_noticed(placement(2, 1, 1), [](FaultSwitches& faults) { faults.count_replicas_twice = true; });
}

TEST_F(FaultSwitch, ATiedTableCountedTwiceIsNoticed) {
  expect_noticed(placement(1, 2, 1), [](FaultSwitches& faults) { faults.count_tied_twice = true; });
}

TEST_F(FaultSwitch, AMeanOfMicroBatchMeansIsNoticed) {
  expect_noticed(placement(1, 1, 1), [](FaultSwitches& faults) { faults.mean_of_micro_batches = true; });
}

TEST_F(FaultSwitch, ClippingByALocalNormIsNoticed) {
  expect_noticed(placement(1, 2, 1), [](FaultSwitches& faults) { faults.local_norm = true; });
}

TEST_F(FaultSwitch, AReplayThatDropsOtherElementsIsNoticed) {
  TrainingCase training = placement(1, 1, 1);
  training.dropout = training.attention_dropout = 0.1;
  training.recomputation = specs::Recomputation::full;
  expect_noticed(training, [](FaultSwitches& faults) { faults.other_masks_on_replay = true; });
}

TEST_F(FaultSwitch, AnUpdateThatGathersNoParametersIsNoticed) {
  TrainingCase training = placement(1, 1, 2);
  training.zero.stage = 1;
  expect_noticed(training, [](FaultSwitches& faults) { faults.update_skips_gather = true; });
}

TEST_F(FaultSwitch, PaddingRowsThatTakeProbabilityAreNoticed) {
  expect_noticed(placement(2, 1, 1), [](FaultSwitches& faults) { faults.unmasked_padding = true; });
}

TEST_F(FaultSwitch, PaddingInTheNormIsNoticed) {
  for (const std::int64_t stage : {2, 3}) {
    TrainingCase training = placement(1, 1, 4);
    training.micro_batches = 3;
    training.zero.stage = stage;
    expect_noticed(training, [](FaultSwitches& faults) { faults.padding_in_norm = true; });
  }
}

TEST_F(FaultSwitch, AShardThatKeepsTheLastMicroBatchAloneIsNoticed) {
  for (const std::int64_t stage : {2, 3}) {
    TrainingCase training = placement(1, 1, 2);
    training.zero.stage = stage;
    expect_noticed(training, [](FaultSwitches& faults) { faults.last_micro_batch_only = true; });
  }
}

TEST_F(FaultSwitch, AMeanOverShardsIsNoticed) {
  for (const std::int64_t stage : {1, 2, 3}) {
    TrainingCase training = placement(1, 1, 2);
    training.zero.stage = stage;
    expect_noticed(training, [](FaultSwitches& faults) { faults.mean_over_shards = true; });
  }
}

TEST_F(FaultSwitch, AShardThatIsNotSummedOverTheNodesIsNoticed) {
  TrainingCase training = placement(1, 1, 4);
  training.micro_batches = 3;
  training.zero.stage = 2;
  training.zero.shard_ranks = 2;
  expect_noticed(training, [](FaultSwitches& faults) { faults.skip_node_reduction = true; });
}

TEST_F(FaultSwitch, AUnitThatStaysGatheredOverAnUpdateIsNoticed) {
  TrainingCase training = placement(1, 1, 2);
  training.zero.stage = 3;
  expect_noticed(training, [](FaultSwitches& faults) { faults.stale_gathered_unit = true; });
}

}  // namespace
}  // namespace runtime::numerics
