// Each test draws from the same seed, so that it draws the same alone and among others.
#include <cstdint>
#include <cstdio>

#include <ATen/Context.h>
#include <gtest/gtest.h>

namespace {

constexpr std::uint64_t seed = 20240607;

class SeedEachTest : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo&) override { at::manual_seed(seed); }
};

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  testing::UnitTest::GetInstance()->listeners().Append(new SeedEachTest);  // GoogleTest deletes it
  std::printf("random inputs from seed %llu\n", static_cast<unsigned long long>(seed));
  return RUN_ALL_TESTS();
}
