#include "runtime/capabilities.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "specs/language/catalog.h"
#include "specs/plan/placement.h"

namespace runtime {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

specs::Placement pipeline_of_two() {
  specs::RegularPlacement regular;
  regular.pipeline = 2;
  return specs::regular_placement(regular, 4);
}

TEST(Capabilities, AreWhatTheCatalogTellsThePlanner) {
  const auto catalog = specs::catalog_stack("dsrun");
  ASSERT_TRUE(catalog.ok()) << catalog.diagnostics.render();
  specs::StackSpec known = capabilities();
  known.source = catalog->source;  // where the facts stand is the catalog's own
  known.gradient_bucket.source = catalog->gradient_bucket.source;
  known.gather_bucket.source = catalog->gather_bucket.source;
  EXPECT_EQ(*catalog, known);
}

TEST(Capabilities, APlainPlacementIsNotRefused) {
  specs::TrainingSpec training;
  EXPECT_THAT(capability_refusals(pipeline_of_two(), training), ElementsAre());
}

TEST(Capabilities, EachFeatureThatIsNotImplementedIsNamedOnceWithWhatIs) {
  specs::TrainingSpec training;
  training.precision = specs::Precision::fp8;
  specs::Placement placement = pipeline_of_two();
  placement.schedule = specs::ScheduleKind::zero_bubble_v;
  for (specs::PipelineStage& stage : placement.stages) {
    stage.mesh.context = 2;
    stage.zero.stage = 3;
    stage.offload.parameters.device = specs::OffloadDevice::nvme;
  }
  EXPECT_THAT(
      capability_refusals(placement, training),
      ElementsAre(HasSubstr("precision fp8 is not implemented; implemented: fp64"),
                  HasSubstr("schedule zb-v is not implemented"), HasSubstr("context parallelism"),
                  HasSubstr("ZeRO stage 3 beside a pipeline is not executed: gradients must stay whole"),
                  HasSubstr("parameter offload to nvme")));
}

/// A key that would change what the plan predicts and nothing of what runs.
TEST(Capabilities, PrecisionsThatNothingIsKeptOrSentInAreRefused) {
  specs::TrainingSpec training;
  training.precision = specs::Precision::bf16;
  training.reduction_precision = specs::Precision::bf16;
  training.parameter_precision = specs::Precision::fp32;
  training.gather_precision = specs::Precision::fp8;
  training.optimizer_state_precision = specs::Precision::bf16;
  EXPECT_THAT(
      capability_refusals(pipeline_of_two(), training),
      ElementsAre(
          "reduction_precision bf16 beside precision bf16 is not implemented; implemented: fp32",
          "parameter_precision fp32 beside precision bf16 is not implemented; implemented: bf16",
          "gather_precision fp8 beside precision bf16 is not implemented; implemented: bf16",
          "optimizer_state_precision bf16 beside precision bf16 is not implemented; implemented: fp32"));
  training = {};
  training.precision = specs::Precision::bf16;
  training.gradient_precision = training.reduction_precision = specs::Precision::bf16;
  training.parameter_precision = training.gather_precision = specs::Precision::bf16;
  EXPECT_THAT(capability_refusals(pipeline_of_two(), training), ElementsAre());
}

}  // namespace
}  // namespace runtime
