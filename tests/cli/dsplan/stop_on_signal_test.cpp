#include "cli/dsplan/stop_on_signal.h"

#include <csignal>

#include <gtest/gtest.h>

namespace cli {
namespace {

TEST(StopOnSignal, TheFirstSignalIsAWishThatTheExitCodeTells) {
  const StopOnSignal stop;
  EXPECT_FALSE(stop.wanted());
  EXPECT_EQ(stop.exit_code(), 0);
  std::raise(SIGTERM);
  EXPECT_TRUE(stop.wanted());
  EXPECT_EQ(stop.exit_code(), 143);
}

TEST(StopOnSignal, TheSecondSignalEndsTheProgramAtOnce) {
  EXPECT_EXIT(
      {
        const StopOnSignal stop;
        std::raise(SIGINT);
        std::raise(SIGINT);
      },
      testing::ExitedWithCode(130), "");
}

}  // namespace
}  // namespace cli
