#include "cli/dsplan/output/file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/support/golden_file.h"

namespace cli {
namespace {

namespace fs = std::filesystem;

class WriteFile : public ::testing::Test {
 protected:
  WriteFile() { fs::create_directories(folder_); }
  ~WriteFile() override { fs::remove_all(folder_); }

  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  const fs::path folder_ = fs::temp_directory_path() / ("dsplan-write-file-" + std::to_string(getpid()));
};

TEST_F(WriteFile, ReplacesTheFileAndLeavesNothingBeside) {
  const fs::path path = folder_ / "plan.json";
  EXPECT_TRUE(write_file(path, "first").empty());
  EXPECT_TRUE(write_file(path, "second").empty());
  EXPECT_EQ(tests::file_text(path), "second");
  EXPECT_EQ(files(), 1u);
}

TEST_F(WriteFile, SaysWhatIsWrongAndLeavesNothing) {
  const specs::Diagnostics missing = write_file(folder_ / "missing" / "plan.json", "text");
  ASSERT_TRUE(missing.has_errors());
  EXPECT_NE(missing.render().find("No such file or directory"), std::string::npos);

  // A folder stands where the file should: the temporary is written, the rename fails.
  fs::create_directories(folder_ / "taken" / "inside");
  EXPECT_TRUE(write_file(folder_ / "taken", "text").has_errors());
  EXPECT_EQ(files(), 1u);
}

}  // namespace
}  // namespace cli
