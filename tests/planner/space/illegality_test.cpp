#include "planner/space/illegality.h"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/space/restrictions.h"
#include "tests/planner/small_experiments.h"

namespace planner {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;
using Keys = std::vector<std::string>;

/// 8 devices, 12 layers, 16 heads, 32 sequences a step.
specs::Experiment experiment_of() { return testing::small_experiment(8, 12, 16, 32); }

TEST(EmptySpace, NamesTheOneKeyThatLeavesNothingAndWhatItsValuesBreak) {
  specs::Experiment experiment = experiment_of();
  experiment.search.tensor = {2};
  experiment.search.pipeline = {4};
  experiment.search.micro_batch = {1, 2};
  experiment.search.schedule = {specs::ScheduleKind::interleaved};
  experiment.search.virtual_stages = {5, 7};
  const EmptySpace empty = why_empty(experiment, testing::able_stack());
  // Without the schedule 1f1b has one stage a rank, which virtual_stages leaves out; without the pipeline
  // neither binds.
  EXPECT_THAT(empty.restricting, UnorderedElementsAre(Keys{"virtual_stages"}, Keys{"pipeline"}));
  ASSERT_EQ(empty.reasons.size(), empty.restricting.size());
  for (std::size_t set = 0; set < empty.reasons.size(); ++set)
    if (empty.restricting[set] == Keys{"virtual_stages"}) {
      EXPECT_THAT(empty.reasons[set], HasSubstr("search.virtual_stages = [5, 7] leaves no placement"));
      EXPECT_THAT(empty.reasons[set], HasSubstr("virtual stages 5"));
      EXPECT_THAT(empty.reasons[set], HasSubstr("virtual stages 7"));
    }
}

TEST(EmptySpace, NamesKeysThatLeaveNothingTogether) {
  specs::Experiment experiment = experiment_of();
  experiment.search.tensor = {3};
  experiment.search.context = {5};
  experiment.search.micro_batch = {1};
  const EmptySpace empty = why_empty(experiment, testing::able_stack());
  EXPECT_THAT(empty.restricting, ElementsAre(Keys{"tensor", "context"}));
  ASSERT_EQ(empty.reasons.size(), 1u);
  EXPECT_THAT(empty.reasons[0], HasSubstr("search.tensor = [3] and search.context = [5] leave no placement"));
  EXPECT_THAT(empty.reasons[0], HasSubstr("16 heads % tensor 3 = 1"));
  EXPECT_THAT(empty.reasons[0], HasSubstr("sequence length % context"));
}

TEST(EmptySpace, NamesAValueOfWhichTheRestNeedsAnother) {
  specs::Experiment experiment = experiment_of();
  specs::StackSpec stack = testing::able_stack();
  stack.parameter_offload = {specs::OffloadDevice::none, specs::OffloadDevice::cpu};
  experiment.search.zero_stage = {1};
  experiment.search.data = {2};
  experiment.search.offload_parameters = {specs::OffloadDevice::cpu};
  const EmptySpace empty = why_empty(experiment, stack);
  EXPECT_THAT(empty.restricting, UnorderedElementsAre(Keys{"zero_stage"}, Keys{"offload_parameters"}));
  for (const std::string& reason : empty.reasons)
    EXPECT_THAT(reason, HasSubstr("parameters are offloaded with ZeRO 3 alone, not 1"));
}

/// deepspeedai/DeepSpeed issue 6914: a batch of 8 sequences against 2 a micro-batch on each of 8 replicas.
TEST(EmptySpace, TellsTheProductThatABatchDoesNotMake) {
  specs::Experiment experiment = testing::small_experiment(8, 12, 16, 8);
  experiment.search.data = {8};
  experiment.search.micro_batch = {2};
  const EmptySpace empty = why_empty(experiment, testing::able_stack());
  EXPECT_THAT(empty.restricting, UnorderedElementsAre(Keys{"data"}, Keys{"micro_batch"}));
  for (const std::string& reason : empty.reasons) EXPECT_THAT(reason, HasSubstr("(batch shape)"));
}

TEST(EmptySpace, EverySetIsEnoughAndNoneIsTooLarge) {
  std::mt19937 random(5);
  const auto pick = [&](std::vector<std::int64_t> values) { return values[random() % values.size()]; };
  int empties = 0;
  for (int round = 0; round < 400; ++round) {
    specs::Experiment experiment = testing::small_experiment(pick({4, 6, 8}), pick({3, 4, 12}), 16, 24);
    specs::SearchSpec& search = experiment.search;
    if (pick({0, 1}) == 1) search.tensor = {pick({1, 2, 3, 8, 16})};
    if (pick({0, 1}) == 1) search.pipeline = {pick({1, 2, 4, 5})};
    if (pick({0, 1}) == 1) search.data = {pick({1, 2, 5, 8})};
    if (pick({0, 1}) == 1) search.micro_batch = {pick({1, 5, 24})};
    if (pick({0, 1}) == 1) search.virtual_stages = {pick({1, 2, 3})};
    if (pick({0, 1}) == 1) search.zero_stage = {pick({0, 2, 3})};
    if (pick({0, 1}) == 1) search.context = {pick({1, 3, 4})};
    const specs::StackSpec stack = testing::able_stack();
    if (!Space(experiment, stack).meshes().empty()) continue;
    ++empties;
    const EmptySpace empty = why_empty(experiment, stack);
    ASSERT_FALSE(empty.restricting.empty());
    ASSERT_EQ(empty.reasons.size(), empty.restricting.size());
    const auto possible_without = [&](const Keys& keys) {
      specs::Experiment lifted = experiment;
      for (const Restriction& restriction : all_restrictions())
        if (std::find(keys.begin(), keys.end(), restriction.key) != keys.end())
          restriction.lift(lifted.search);
      return !Space(lifted, stack).meshes().empty();
    };
    for (const Keys& keys : empty.restricting) {
      EXPECT_EQ(keys.size(), empty.restricting.front().size());
      EXPECT_TRUE(possible_without(keys));
      for (const std::string& kept : keys) {
        Keys fewer = keys;
        std::erase(fewer, kept);
        EXPECT_FALSE(possible_without(fewer)) << kept;
      }
    }
  }
  EXPECT_GT(empties, 40);
}

}  // namespace
}  // namespace planner
