#include "cli/version.h"

#include <gtest/gtest.h>

TEST(Version, NamesTheProgramAndItsVersion) {
  EXPECT_EQ(cli::version_line("dsplan").rfind("dsplan 0.", 0), 0U);
}
