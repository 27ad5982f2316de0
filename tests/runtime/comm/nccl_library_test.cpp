#include <stdexcept>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/comm/process_group.h"

// Where there are GPUs the library loads, and other tests use it; everywhere else its absence is explained.
TEST(NcclLibrary, SaysWhatIsMissingWhereItDoesNotLoad) {
  try {
    (void)runtime::make_nccl_factory({.device = runtime::DeviceKind::cuda});
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("the plan is for GPUs"));
    EXPECT_THAT(error.what(), testing::HasSubstr("DSPLAN_CUDA=ON"));
    return;
  }
  GTEST_SKIP() << "the CUDA back end loads here";
}
