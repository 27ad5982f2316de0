// Offload to NVMe dies of the host's memory, not of the drive's: deepspeedai/DeepSpeed issue 4571.
#include <gmock/gmock.h>

#include "planner/plan/price_placement.h"
#include "tests/cost_models/model_fixtures.h"

namespace planner {
namespace {

using ::testing::HasSubstr;

/// 7 billion parameters on two 24 GB devices whose host has 31.2 GB for each.
specs::Experiment swapped(std::int64_t buffer_elements) {
  specs::Experiment experiment = cost_models::testing::experiment(
      cost_models::testing::llama(32, 4096, 32, 32, 11008, 32000), 1, 8, 2048, "deepspeed");
  specs::NodeSpec& node = experiment.cluster.groups.front().node;
  node.devices = 2;
  node.device.memory_bytes = 24ll << 30;
  node.host_memory_bytes = 62'400'000'000;
  node.nvme_bytes = 4'000'000'000'000;
  node.nvme_read_bytes_per_second = 5e9;
  node.nvme_write_bytes_per_second = 2e9;
  experiment.training.precision = specs::Precision::fp16;
  experiment.training.swap_buffer_elements = buffer_elements;
  return experiment;
}

specs::Placement on_drives(const specs::Experiment& experiment) {
  specs::RegularPlacement placement;
  placement.data = 2;
  placement.accumulation = 4;
  placement.zero.stage = 3;
  placement.recomputation = specs::Recomputation::full;
  placement.offload.optimizer = placement.offload.parameters = {specs::OffloadDevice::nvme, 8};
  return specs::regular_placement(placement, experiment.model.layers);
}

TEST(SwapMemory, TooLargeBuffersDoNotFitTheHostAndTheAnswerNamesThem) {
  const specs::Experiment experiment = swapped(1'000'000'000);
  const auto priced = price_placement(experiment, on_drives(experiment));
  ASSERT_TRUE(priced) << priced.diagnostics.render();
  EXPECT_THAT(priced->memory_shortfall, HasSubstr("host memory: needs"));
  EXPECT_THAT(priced->memory_shortfall, HasSubstr("are pinned buffers"));
  EXPECT_THAT(priced->memory_shortfall, HasSubstr("a rank on 2 ranks a node"));
  EXPECT_THAT(priced->memory_shortfall, HasSubstr("training.swap_buffer_elements"));
}

TEST(SwapMemory, TheDefaultBuffersFit) {
  const specs::Experiment experiment = swapped(0);
  const auto priced = price_placement(experiment, on_drives(experiment));
  ASSERT_TRUE(priced) << priced.diagnostics.render();
  EXPECT_EQ(priced->memory_shortfall, "");
}

}  // namespace
}  // namespace planner
