#include "runtime/data/batch_loader.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/model/counter_random.h"
#include "tests/support/temporary_folder.h"

namespace runtime {
namespace {

constexpr std::int64_t global_batch = 8;
constexpr std::int64_t length = 6;

class BatchLoaderTest : public testing::Test {
 protected:
  BatchLoaderTest() {
    training_.global_batch = global_batch;
    training_.sequence_length = length;
    training_.data.held_back_fraction = 0.2;
    training_.data.evaluation_batches = 2;
    std::string text;
    for (std::uint64_t i = 0; i < 500; ++i) text.push_back(static_cast<char>(philox(1, 2, i)[0]));
    data_ = open_data(folder_.write("text", text), training_, 256);
  }

  static specs::Placement placement(std::int64_t data, std::int64_t micro_batch) {
    specs::Placement placement;
    placement.micro_batch = micro_batch;
    placement.accumulation = global_batch / data / micro_batch;
    return placement;
  }

  BatchLoader loader(std::int64_t data, std::int64_t micro_batch, std::int64_t rank) const {
    return {*data_, training_, placement(data, micro_batch), rank};
  }

  /// Inputs and targets of a global batch in the order of their places, whatever rank reads them.
  std::vector<std::int64_t> global(std::int64_t consumed, std::int64_t data, std::int64_t micro_batch) const {
    std::vector<std::int64_t> tokens(2 * global_batch * length, -7);
    for (std::int64_t rank = 0; rank < data; ++rank) {
      const BatchLoader reader = loader(data, micro_batch, rank);
      for (std::int64_t m = 0; m < reader.micro_batches(); ++m) {
        const MicroBatch batch = reader.training(consumed, m);
        const auto at = 2 * batch.first_sequence * length;
        const auto count = micro_batch * length;
        std::copy_n(batch.tokens.const_data_ptr<std::int64_t>(), count, tokens.begin() + at);
        std::copy_n(batch.targets.const_data_ptr<std::int64_t>(), count, tokens.begin() + at + count);
      }
    }
    return tokens;
  }

  tests::TemporaryFolder folder_;
  specs::TrainingSpec training_;
  specs::Result<TrainingData> data_;
};

TEST_F(BatchLoaderTest, TokensOfTwentyStepsAreTheSameForAnyDataParallelDegree) {
  ASSERT_TRUE(data_) << data_.diagnostics.render();
  for (std::int64_t step = 0; step < 20; ++step) {
    const auto reference = global(step * global_batch, 1, 2);
    EXPECT_EQ(std::count(reference.begin(), reference.end(), -7), 0);
    EXPECT_EQ(global(step * global_batch, 2, 2), reference);
    EXPECT_EQ(global(step * global_batch, 4, 2), reference);
  }
}

TEST_F(BatchLoaderTest, RanksReadDisjointSamplesAndTogetherTheWholeEpoch) {
  ASSERT_TRUE(data_);
  const std::int64_t samples = data_->training.sequences();
  std::multiset<std::int64_t> seen;
  const std::int64_t steps = samples;  // samples × global_batch places: each sample once in 8 epochs
  for (std::int64_t step = 0; step < steps; ++step)
    for (std::int64_t rank = 0; rank < 4; ++rank)
      for (const std::int64_t sample : loader(4, 2, rank).samples(step * global_batch, 0))
        seen.insert(sample);
  for (std::int64_t sample = 0; sample < samples; ++sample) EXPECT_EQ(seen.count(sample), global_batch);
}

TEST_F(BatchLoaderTest, TenSamplesOnFourRanksGoOnIntoTheNextEpochWithEveryRankDoingEveryStep) {
  training_.global_batch = 4;
  training_.data.held_back_fraction = 0;
  const auto ten = open_data(folder_.write("ten", std::string(10 * length + 1, 'x')), training_, 256);
  ASSERT_TRUE(ten);
  ASSERT_EQ(ten->training.sequences(), 10);
  specs::Placement placement;
  placement.micro_batch = 1;
  std::vector<int> times(10, 0);
  for (std::int64_t rank = 0; rank < 4; ++rank) {
    const BatchLoader reader(*ten, training_, placement, rank);
    ASSERT_EQ(reader.micro_batches(), 1);
    for (std::int64_t step = 0; step < 5; ++step)
      for (const std::int64_t sample : reader.samples(step * 4, 0)) ++times[static_cast<std::size_t>(sample)];
  }
  EXPECT_EQ(times, std::vector<int>(10, 2));  // 5 steps of 4 are two epochs of 10
}

TEST_F(BatchLoaderTest, AReaderStartedAnywhereGoesOnAsOneThatNeverStopped) {
  ASSERT_TRUE(data_);
  const BatchLoader whole = loader(2, 2, 1);
  std::vector<std::vector<std::int64_t>> stream;
  for (std::int64_t step = 0; step < 30; ++step)
    for (std::int64_t m = 0; m < 2; ++m) stream.push_back(whole.samples(step * global_batch, m));
  for (std::int64_t stop = 0; stop < 30; ++stop) {
    const BatchLoader resumed = loader(2, 2, 1);
    for (std::int64_t step = stop; step < 30; ++step)
      for (std::int64_t m = 0; m < 2; ++m)
        ASSERT_EQ(resumed.samples(step * global_batch, m), stream[static_cast<std::size_t>(2 * step + m)]);
  }
}

TEST_F(BatchLoaderTest, TargetsAreTheInputsShiftedByOne) {
  ASSERT_TRUE(data_);
  const MicroBatch batch = loader(1, 8, 0).training(0, 0);
  EXPECT_TRUE(batch.tokens.slice(1, 1).equal(batch.targets.slice(1, 0, length - 1)));
}

TEST_F(BatchLoaderTest, EvaluationNeverTouchesTrainingTextAndCoversEachHeldBackSequenceOnce) {
  ASSERT_TRUE(data_);
  // 100 tokens are held back: 16 sequences, two whole batches.
  ASSERT_EQ(data_->held_back.sequences(), 16);
  const BatchLoader reader = loader(1, 8, 0);
  EXPECT_EQ(reader.evaluation_batches(), 2);
  std::vector<std::int64_t> expected(length + 1);
  for (std::int64_t sequence = 0; sequence < 16; ++sequence) {
    data_->held_back.read(sequence, expected);
    const MicroBatch batch = reader.evaluation(sequence / 8, 0);
    const auto* row = batch.tokens.const_data_ptr<std::int64_t>() + sequence % 8 * length;
    EXPECT_TRUE(std::equal(row, row + length, expected.begin()));
  }
}

TEST_F(BatchLoaderTest, PlacesBeyondTheHeldBackTextHaveNoTargets) {
  training_.data.evaluation_batches = 5;
  training_.data.held_back_fraction = 0.15;
  data_ = open_data(folder_.path() / "text", training_, 256);
  ASSERT_TRUE(data_);
  ASSERT_EQ(data_->held_back.sequences(), 12);
  const BatchLoader reader = loader(2, 2, 1);  // places 4 … 7
  EXPECT_EQ(reader.evaluation_batches(), 2);
  const auto targets = [](const MicroBatch& batch) { return batch.targets.ge(0).sum().item<std::int64_t>(); };
  EXPECT_EQ(targets(reader.evaluation(0, 0)), 2 * length);
  EXPECT_EQ(targets(reader.evaluation(1, 0)), 0);
  EXPECT_EQ(targets(loader(2, 2, 0).evaluation(1, 1)), 2 * length);
}

}  // namespace
}  // namespace runtime
