// What the cost model says of a rank's memory under each ZeRO stage, against the bytes its ranks count.
#include <cstdio>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "cost_models/estimate.h"
#include "tests/memory/memory_job.h"
#include "tests/runtime/pool_fixture.h"

namespace runtime {
namespace {

std::map<std::string, double> predicted_bytes(const MemoryCase& memory_case) {
  const specs::CostBreakdown cost =
      cost_models::Estimator(experiment_of(memory_case)).estimate(placement_of(memory_case));
  std::map<std::string, double> bytes;
  for (const specs::MemoryEntry& entry : cost.memory) {
    if (entry.location != specs::MemoryLocation::device) continue;
    bytes[std::string(specs::name_of(entry.memory_class))] += static_cast<double>(entry.bytes);
    bytes["total"] += static_cast<double>(entry.bytes);
  }
  return bytes;
}

class ZeroMemory : public PoolFixture<4> {
 protected:
  static void expect_predicted(const MemoryCase& memory_case) {
    const std::map<std::string, double> counted = peak_bytes(*pool_, memory_case);
    std::map<std::string, double> predicted = predicted_bytes(memory_case);
    const double total = counted.at("total");
    std::printf("%-60s %8.3f MB, predicted %+.2f %%\n", memory_case.name().c_str(), total / 1e6,
                100 * (predicted["total"] / total - 1));
    EXPECT_NEAR(predicted["total"], total, 0.03 * total) << memory_case.name();
    // What is held throughout, class by class. What is whole for a moment is in the total alone: passes of
    // two units may be nearly equal peaks of another mix.
    for (const char* of : {"parameters", "gradients", "optimizer_state", "master_weights"})
      EXPECT_NEAR(predicted[of], counted.at(of), 0.001 * total) << memory_case.name() << ": " << of;
  }
};

TEST_F(ZeroMemory, OfEachStageIsPredictedWithin3Percent) {
  for (const bool llama : {false, true})
    for (const bool bf16 : {false, true})
      for (const std::int64_t stage : {0, 1, 2, 3})
        expect_predicted({.llama = llama, .zero_stage = stage, .bf16 = bf16});
}

TEST_F(ZeroMemory, FollowsBucketsPrefetchKeptUnitsAndAccumulation) {
  for (const bool llama : {false, true}) {
    for (const std::int64_t stage : {2, 3})
      for (const std::int64_t bucket_bytes :
           {std::int64_t{0}, std::int64_t{256} << 10, std::int64_t{25} << 20})
        expect_predicted({.llama = llama, .zero_stage = stage, .bucket_bytes = bucket_bytes});
    for (const std::int64_t prefetch : {0, 3})
      expect_predicted({.llama = llama, .zero_stage = 3, .prefetch_units = prefetch});
    for (const std::int64_t kept : {1, 4})
      expect_predicted({.llama = llama, .zero_stage = 3, .kept_units = kept});
    expect_predicted({.llama = llama, .zero_stage = 2, .accumulation = 1});
    expect_predicted({.llama = llama, .data = 4, .zero_stage = 3, .accumulation = 1});
    expect_predicted({.llama = llama, .zero_stage = 3, .vocabulary = 16384});
    expect_predicted({.llama = llama, .tensor = 2, .zero_stage = 3});
    expect_predicted({.llama = llama, .zero_stage = 3, .recomputation = true});
  }
}

}  // namespace
}  // namespace runtime
