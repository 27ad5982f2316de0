#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "runtime/checkpoint/manifest.h"
#include "runtime/model/counter_random.h"
#include "tests/runtime/checkpoint/resume_job.h"
#include "tests/runtime/pool_fixture.h"
#include "tests/support/temporary_folder.h"

namespace runtime {
namespace {

namespace fs = std::filesystem;

using numerics::TinyModel;
using numerics::TrainingCase;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TrainingCase layout(std::int64_t tensor, std::int64_t pipeline, std::int64_t data, std::int64_t zero_stage) {
  TrainingCase training;
  training.fixed_layers = 4;
  training.optimizer = specs::OptimizerKind::adamw;
  training.tensor = tensor;
  training.pipeline = pipeline;
  training.data = data;
  training.zero.stage = zero_stage;
  training.micro_batches = 2;
  return training;
}

/// Up to `ranks`: {tp 1, 2} × {pp 1, 2} × {dp 1, 2 with each ZeRO stage that goes with the pipeline}.
std::vector<TrainingCase> layouts(std::int64_t ranks) {
  std::vector<TrainingCase> all;
  for (const std::int64_t tensor : {1, 2})
    for (const std::int64_t pipeline : {1, 2})
      for (const auto& [data, zero_stage] : {std::pair{1, 0}, {2, 0}, {2, 1}, {2, 2}, {2, 3}})
        if (tensor * pipeline * data <= ranks && (pipeline == 1 || zero_stage < 2))
          all.push_back(layout(tensor, pipeline, data, zero_stage));
  return all;
}

class ResumeTest : public PoolFixture<8> {
 protected:
  ResumeTest() {
    // 24 sequences make a step; 88 samples make an epoch, so that steps cross its end.
    std::string text;
    for (std::uint64_t i = 0; i < 88 * TrainingCase{}.sequence_length * 5 / 4 + 20; ++i)
      text.push_back(static_cast<char>(philox(3, 1, i)[0] % TrainingCase::vocabulary));
    data_.assign(8, folder_.write("text", text));
  }

  ResumeOutcome train(const TrainingCase& training, const std::string& name, std::int64_t steps,
                      std::int64_t save_at) {
    return run(*pool_, {training, data_, {8, folder_.path() / name}, false, steps, save_at});
  }
  ResumeOutcome resume(const TrainingCase& training, const std::string& name, std::int64_t steps) {
    return run(*pool_, {training, data_, {8, folder_.path() / name}, true, steps, 0});
  }

  void expect_same_after_resume(const TrainingCase& training) {
    const std::string name = "run " + training.name();
    const ResumeOutcome whole = train(training, name, 7, 4);
    ASSERT_EQ(whole.error, "");
    EXPECT_THAT(whole.defects, IsEmpty());
    const ResumeOutcome resumed = resume(training, name, 7);
    ASSERT_EQ(resumed.error, "");
    EXPECT_EQ(resumed.first_step, 5);
    EXPECT_EQ(resumed.losses, std::vector<double>(whole.losses.begin() + 4, whole.losses.end())) << name;
    EXPECT_EQ(resumed.held_back_loss, whole.held_back_loss) << name;
    EXPECT_TRUE(resumed.at_end == whole.at_end) << name;
    EXPECT_FALSE(resumed.at_start == resumed.at_end);
  }

  tests::TemporaryFolder folder_;
  std::vector<fs::path> data_;  ///< of each rank
};

TEST_F(ResumeTest, AResumedRunIsBitForBitTheOneThatNeverStopped) {
  for (TrainingCase training : {layout(1, 1, 1, 0), layout(2, 1, 2, 1), layout(1, 2, 2, 0),
                                layout(2, 2, 2, 1), layout(1, 1, 2, 2), layout(2, 1, 2, 3)}) {
    training.dropout = 0.1;
    expect_same_after_resume(training);
  }
}

TEST_F(ResumeTest, SoIsOneIn16BitsWithMasterWeightsOneWithMomentumAndOneIn64Bits) {
  TrainingCase training = layout(2, 1, 2, 1);
  training.precision = specs::Precision::bf16;
  expect_same_after_resume(training);
  training = layout(1, 1, 4, 3);
  training.zero.shard_ranks = 2;
  training.precision = specs::Precision::bf16;
  expect_same_after_resume(training);
  training = layout(1, 2, 2, 1);
  training.model = TinyModel::llama;
  training.optimizer = specs::OptimizerKind::sgd;
  expect_same_after_resume(training);
  training.precision = specs::Precision::fp64;
  expect_same_after_resume(training);
}

/// fp16, where the scale grows until gradients overflow, shrinks and grows again: 20 steps against 10 and 10.
TEST_F(ResumeTest, AResumedRunGoesOnWithItsLossScaleAndLearningRate) {
  TrainingCase training = layout(1, 2, 2, 1);
  training.precision = specs::Precision::fp16;
  training.warmup_steps = 15;
  training.initial_loss_scale = 0x1p16;
  training.loss_scale_window = 2;
  const ResumeOutcome whole = train(training, "scaled", 20, 10);
  ASSERT_EQ(whole.error, "");
  const auto& scales = whole.loss_scales;
  const std::vector<double> second_half(scales.begin() + 10, scales.end());
  EXPECT_GT(*std::max_element(scales.begin(), scales.begin() + 10), 0x1p16) << "the scale has not grown";
  EXPECT_TRUE(std::adjacent_find(second_half.begin(), second_half.end(), std::greater<>()) !=
              second_half.end())
      << "no overflow after the checkpoint";
  const ResumeOutcome resumed = resume(training, "scaled", 20);
  ASSERT_EQ(resumed.error, "");
  EXPECT_EQ(resumed.loss_scales, second_half);
  EXPECT_EQ(resumed.learning_rates,
            std::vector<double>(whole.learning_rates.begin() + 10, whole.learning_rates.end()));
  EXPECT_EQ(resumed.losses, std::vector<double>(whole.losses.begin() + 10, whole.losses.end()));
  EXPECT_TRUE(resumed.at_end == whole.at_end);
}

/// Dropout, shuffled samples, warm-up, four micro-batches a step, an epoch of less than four steps.
TEST_F(ResumeTest, AResumedRunReadsTheSamplesThatWouldHaveComeNext) {
  TrainingCase training = layout(1, 1, 1, 0);
  training.dropout = training.attention_dropout = 0.1;
  training.warmup_steps = 15;
  training.micro_batches = 4;
  const ResumeOutcome whole = train(training, "samples", 20, 10);
  ASSERT_EQ(whole.error, "");
  const ResumeOutcome resumed = resume(training, "samples", 20);
  ASSERT_EQ(resumed.error, "");
  EXPECT_EQ(resumed.samples, std::vector<std::string>(whole.samples.begin() + 10, whole.samples.end()));
  EXPECT_EQ(resumed.learning_rates,
            std::vector<double>(whole.learning_rates.begin() + 10, whole.learning_rates.end()));
  EXPECT_EQ(resumed.losses, std::vector<double>(whole.losses.begin() + 10, whole.losses.end()));
  EXPECT_TRUE(resumed.at_end == whole.at_end);
}

TEST_F(ResumeTest, SoIsOneWhoseOptimizerIsOffloadedWhollyOrInPart) {
  for (const std::int64_t eighths : {3, 8}) {
    TrainingCase training = layout(2, 1, 2, 1);
    training.offload.optimizer = {specs::OffloadDevice::cpu, eighths};
    expect_same_after_resume(training);
    training = layout(1, 2, 1, 0);
    training.precision = specs::Precision::bf16;
    training.offload.optimizer = {specs::OffloadDevice::cpu, eighths};
    expect_same_after_resume(training);
  }
}

TEST_F(ResumeTest, ADelayedUpdateIsFinishedBeforeItIsSaved) {
  TrainingCase training = layout(1, 1, 2, 1);
  training.offload.optimizer = {specs::OffloadDevice::cpu, 8};
  training.offload.delayed_update = true;
  expect_same_after_resume(training);
}

TEST_F(ResumeTest, OffloadedStateIsReadWhereverItIsToLie) {
  TrainingCase offloaded = layout(1, 1, 2, 1);
  offloaded.offload.optimizer = {specs::OffloadDevice::cpu, 5};
  const ResumeOutcome written = train(offloaded, "offloaded", 2, 2);
  ASSERT_EQ(written.error, "");
  EXPECT_THAT(written.defects, IsEmpty());
  TrainingCase other = layout(1, 2, 1, 0);
  other.offload.optimizer = {specs::OffloadDevice::cpu, 2};
  for (const TrainingCase& loaded : {layout(2, 1, 1, 0), other}) {
    const ResumeOutcome read = resume(loaded, "offloaded", 2);
    ASSERT_EQ(read.error, "") << loaded.name();
    EXPECT_THAT(read.defects, IsEmpty()) << loaded.name();
    EXPECT_TRUE(read.at_start == written.at_end) << loaded.name();
  }
}

/// Every parameter and moment bit for bit, and the next step's loss that of the run that went on.
TEST_F(ResumeTest, AnyLayoutReadsWhatAnyOtherHasWritten) {
  const std::vector<TrainingCase> all = layouts(8);
  ASSERT_EQ(all.size(), 16);
  const double next_loss = train(layout(1, 1, 1, 0), "reference", 3, 0).losses.at(2);
  for (const TrainingCase& saved : all) {
    const ResumeOutcome written = train(saved, saved.name(), 2, 2);
    ASSERT_EQ(written.error, "") << saved.name();
    EXPECT_THAT(written.defects, IsEmpty()) << saved.name();
    for (const TrainingCase& loaded : all) {
      const std::string pair = saved.name() + " → " + loaded.name();
      const ResumeOutcome read = resume(loaded, saved.name(), 3);
      ASSERT_EQ(read.error, "") << pair;
      EXPECT_THAT(read.defects, IsEmpty()) << pair;
      EXPECT_TRUE(read.at_start == written.at_end) << pair;
      ASSERT_EQ(read.losses.size(), 1) << pair;
      EXPECT_NEAR(read.losses[0], next_loss, 1e-5 * next_loss) << pair;
    }
  }
}

/// Sizes that do not divide by 3 or 6 ranks times 16: the shards' padding is in no checkpoint.
TEST_F(ResumeTest, ShardsGoFromFourReplicasToSixToThreeToOneAndBackThroughAllZeroStages) {
  WholeTensors before;
  std::int64_t step = 1;
  for (const auto& [replicas, zero_stage] :
       {std::pair{4, 1}, {6, 3}, {3, 2}, {1, 0}, {6, 1}, {2, 3}, {4, 3}}) {
    TrainingCase training = layout(1, 1, replicas, zero_stage);
    const ResumeOutcome outcome =
        run(*pool_, {training, data_, {8, folder_.path() / "chain"}, step > 1, step, step});
    ASSERT_EQ(outcome.error, "") << replicas;
    EXPECT_THAT(outcome.defects, IsEmpty()) << replicas;
    if (step > 1) {
      EXPECT_EQ(outcome.first_step, step);
      EXPECT_TRUE(outcome.at_start == before) << replicas;
    }
    before = outcome.at_end;
    ++step;
  }
}

TEST_F(ResumeTest, TensorAndPipelineDegreesChangeUnderShardedParameters) {
  TrainingCase saved = layout(2, 1, 2, 3);
  saved.sequence_parallel = true;
  const ResumeOutcome written = train(saved, "degrees", 2, 2);
  ASSERT_EQ(written.error, "");
  for (const TrainingCase& loaded : {layout(1, 2, 2, 1), layout(1, 4, 1, 0), layout(1, 1, 2, 3)}) {
    const ResumeOutcome read = resume(loaded, "degrees", 2);
    ASSERT_EQ(read.error, "") << loaded.name();
    EXPECT_THAT(read.defects, IsEmpty()) << loaded.name();
    EXPECT_TRUE(read.at_start == written.at_end) << loaded.name();
  }
}

TEST_F(ResumeTest, KeyAndValueHeadsOnSeveralRanksAreWrittenOnceAndReadByAll) {
  std::vector<TrainingCase> all{layout(1, 1, 1, 0), layout(4, 1, 1, 0), layout(4, 1, 2, 1),
                                layout(3, 1, 1, 0)};
  for (TrainingCase& training : all) training.model = TinyModel::llama;
  all.back().model = TinyModel::llama_thirds;
  const ResumeOutcome written = train(all[1], "kv", 2, 2);
  ASSERT_EQ(written.error, "");
  for (std::size_t i = 0; i < 3; ++i) {
    const ResumeOutcome read = resume(all[i], "kv", 2);
    EXPECT_EQ(read.error, "");
    EXPECT_TRUE(read.at_start == written.at_end) << all[i].name();
  }
  EXPECT_THAT(resume(all[3], "kv", 2).error, HasSubstr("has shape"));
}

TEST_F(ResumeTest, TheHeldBackLossIsTheSameUnderAnyPlacement) {
  const double reference = train(layout(1, 1, 1, 0), "none", 2, 0).held_back_loss;
  EXPECT_GT(reference, 1);
  for (const TrainingCase& training : layouts(4))
    EXPECT_NEAR(train(training, "none", 2, 0).held_back_loss, reference, 1e-5 * reference) << training.name();
}

TEST_F(ResumeTest, AShardThatIsTruncatedOrGoneMakesAllRanksTakeTheCheckpointBefore) {
  const TrainingCase training = layout(2, 1, 2, 1);
  ASSERT_EQ(train(training, "run", 2, 2).error, "");
  ASSERT_EQ(train(training, "run", 4, 4).error, "");
  const fs::path shard = folder_.path() / "run" / "step_4" / rank_file_name(2);
  fs::resize_file(shard, fs::file_size(shard) - 1);
  const ResumeOutcome truncated = resume(training, "run", 3);
  EXPECT_EQ(truncated.error, "");
  EXPECT_EQ(truncated.first_step, 3);
  EXPECT_THAT(truncated.passed_over, ElementsAre(AllOf(HasSubstr("step_4"), HasSubstr("were written"))));
  fs::remove(shard);
  const ResumeOutcome deleted = resume(training, "run", 3);
  EXPECT_EQ(deleted.first_step, 3);
  EXPECT_EQ(deleted.losses, truncated.losses);
}

TEST_F(ResumeTest, HostsWithFoldersOfTheirOwnEachKeepWhatTheirRanksNeed) {
  const TrainingCase training = layout(2, 1, 2, 1);
  const fs::path one = folder_.path() / "host0", other = folder_.path() / "host1";
  const std::vector<fs::path> hosts{one, one, other, other};
  const ResumeOutcome whole = run(*pool_, {training, data_, hosts, false, 4, 2});
  ASSERT_EQ(whole.error, "");
  for (const fs::path& host : {one, other}) {
    EXPECT_TRUE(fs::exists(host / "step_2" / manifest_name));
    EXPECT_TRUE(fs::exists(host / "latest"));
    EXPECT_FALSE(fs::exists(host / "step_2.tmp"));
  }
  const ResumeOutcome resumed = run(*pool_, {training, data_, hosts, true, 4, 0});
  ASSERT_EQ(resumed.error, "");
  EXPECT_TRUE(resumed.at_end == whole.at_end);
  // Without the shards of the other host, the job says what it lacks.
  const ResumeOutcome half = run(*pool_, {layout(2, 1, 1, 0), data_, hosts, true, 4, 0});
  EXPECT_THAT(half.error, HasSubstr("lacks"));
  // A checkpoint that one host has and the other has not is none.
  fs::remove_all(other / "step_2");
  EXPECT_THAT(run(*pool_, {training, data_, hosts, true, 4, 0}).error,
              AllOf(HasSubstr("rank 2"), HasSubstr("is not there")));
}

TEST_F(ResumeTest, WhereOneRankCannotWriteNothingIsRenamedAnywhereAndAllSayWhy) {
  const TrainingCase training = layout(2, 1, 1, 0);
  const fs::path good = folder_.path() / "good", bad = folder_.write("in the way", "");
  const ResumeOutcome failed = run(*pool_, {training, data_, {good, bad}, false, 2, 2});
  EXPECT_THAT(failed.error, AllOf(HasSubstr("step 2 was not written"), HasSubstr("rank 1")));
  EXPECT_TRUE(fs::is_empty(good));
}

TEST_F(ResumeTest, ARankOfAReplicaThatReadsAnotherTextIsFoundBeforeTheFirstStep) {
  data_[1] = folder_.write("other", std::string(1200, '\1'));
  EXPECT_THAT(train(layout(2, 1, 1, 0), "run", 1, 0).error,
              HasSubstr("ranks 0 and 1 belong to one replica but read different tokens"));
}

/// huggingface/datasets#5360.
TEST_F(ResumeTest, ReplicasThatReadTheSameSequencesAreFoundBeforeTheFirstStep) {
  for (const std::int64_t pipeline : {1, 2}) {
    const ResumeOutcome outcome = run(*pool_, {.training = layout(1, pipeline, 2, 0),
                                               .data = data_,
                                               .checkpoints = {8, folder_.path() / "run"},
                                               .steps = 1,
                                               .reads_alike = true});
    EXPECT_THAT(outcome.error, HasSubstr("reads sequences 0 to 11 of the batch"));
    EXPECT_THAT(outcome.error, HasSubstr("of the next replica begins at 0"));
    EXPECT_THAT(outcome.losses, IsEmpty());
  }
}

}  // namespace
}  // namespace runtime
