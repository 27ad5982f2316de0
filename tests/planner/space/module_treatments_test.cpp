#include "planner/space/module_treatments.h"

#include <gtest/gtest.h>

#include "planner/plan/price_placement.h"
#include "specs/language/read_experiment.h"
#include "specs/plan/placement_check.h"

namespace planner {
namespace {

specs::Plan plan_of(const std::vector<std::string>& search) {
  std::vector<std::string> settings{"model.preset=gpt2-medium", "cluster.nodes=1", "training.global_batch=16",
                                    "training.sequence_length=1024", "search.micro_batch=[1]"};
  settings.insert(settings.end(), search.begin(), search.end());
  const auto experiment = specs::read_experiment("examples/gpt3-175b.toml", settings);
  EXPECT_TRUE(experiment.ok()) << experiment.diagnostics.render();
  const auto priced = price_best_completion(*experiment);
  EXPECT_TRUE(priced.ok()) << priced.diagnostics.render();
  return priced->plan;
}

TEST(ModuleTreatments, AreLaidOverEveryStageInTheirCanonicalForm) {
  const specs::Plan plan = plan_of({"search.tensor=[4]", "search.pipeline=[2]"});
  specs::SearchSpec search;
  EXPECT_FALSE(restricts_modules(search));
  search.attention_tensor = {4};
  search.feed_forward_tensor = {2};
  search.output_mode = {specs::OutputLayerMode::token_parallel};
  EXPECT_TRUE(restricts_modules(search));
  EXPECT_EQ(without_module_treatments(search).output_mode,
            std::vector{specs::OutputLayerMode::vocabulary_parallel});
  const auto treated = with_module_treatments(plan.placement, search);
  ASSERT_TRUE(treated.ok());
  for (const specs::PipelineStage& stage : treated->stages) {
    EXPECT_EQ(stage.modules.attention_tensor, 0) << "the stage's own";
    EXPECT_EQ(stage.modules.feed_forward_tensor, 2);
    EXPECT_EQ(stage.modules.output_mode, specs::OutputLayerMode::token_parallel);
    EXPECT_EQ(stage.modules.output_tensor, 1);
  }
  EXPECT_TRUE(price_placement(plan.inputs, *treated).ok());
  search.attention_tensor = {2, 4};
  EXPECT_FALSE(with_module_treatments(plan.placement, search).ok());
}

TEST(ModuleTreatments, CutsBeforeFeedForwardsMoveEachCutByOneUnit) {
  const specs::Plan plan =
      plan_of({"search.tensor=[2]", "search.pipeline=[4]", "search.recomputation=[\"full\"]",
               "search.schedule=[\"1f1b\"]", "search.cuts_inside_layers=false"});
  const std::int64_t layers = specs::block_count(plan.inputs.model);
  const specs::Placement cut = with_cuts_before_feed_forwards(plan.placement, layers);
  ASSERT_EQ(cut.stages.size(), 4u);
  for (std::size_t i = 0; i + 1 < cut.stages.size(); ++i) {
    EXPECT_EQ(cut.stages[i].units.end, plan.placement.stages[i].units.end + 1);
    EXPECT_EQ(cut.stages[i].units.end % 2, 0) << "the next stage begins with an FFN";
    EXPECT_EQ(cut.stages[i].units.end, cut.stages[i + 1].units.first);
  }
  EXPECT_EQ(cut.stages.back().units.end, plan.placement.stages.back().units.end);
  const auto violations =
      specs::placement_violations(cut, plan.inputs.model, plan.inputs.cluster, plan.inputs.training);
  EXPECT_TRUE(violations.empty()) << violations.front().message;
  EXPECT_EQ(with_cuts_before_feed_forwards(cut, layers), cut);
}

}  // namespace
}  // namespace planner
