#include "specs/language/text_file.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/temporary_folder.h"

namespace specs {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

class TextFile : public testing::Test {
 protected:
  const tests::TemporaryFolder temporary_;
  const fs::path& folder_ = temporary_.path();
};

TEST_F(TextFile, WritesAFileWholeAndLeavesNothingBeside) {
  EXPECT_TRUE(write_text_file(folder_ / "made" / "a", "one").empty());
  EXPECT_TRUE(write_text_file(folder_ / "made" / "a", "two").empty());
  EXPECT_EQ(text_of(folder_ / "made" / "a"), "two");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / "made"), fs::directory_iterator()), 1);
}

TEST_F(TextFile, FollowsALinkAndKeepsIt) {
  EXPECT_TRUE(write_text_file(folder_ / "target", "old").empty());
  fs::create_symlink("target", folder_ / "link");
  EXPECT_TRUE(write_text_file(folder_ / "link", "new").empty());
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(text_of(folder_ / "target"), "new");
}

TEST_F(TextFile, LeavesADeviceADevice) {
  // Through a link, so that a mistake replaces the link and not the machine's device.
  fs::create_symlink("/dev/null", folder_ / "null");
  EXPECT_TRUE(write_text_file(folder_ / "null", "text").empty());
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_TRUE(fs::is_symlink(folder_ / "null"));
  fs::create_symlink("/dev/full", folder_ / "full");
  EXPECT_TRUE(write_text_file(folder_ / "full", "text").has_errors());
}

TEST_F(TextFile, WritesIntoThePipeThatALinkLeadsTo) {
  // As /dev/stdout does: what it links to is no path of a file.
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  fs::create_symlink("/proc/self/fd/" + std::to_string(ends[1]), folder_ / "out");
  EXPECT_TRUE(write_text_file(folder_ / "out", "text").empty());
  char text[5] = {};
  EXPECT_EQ(::read(ends[0], text, 4), 4);
  EXPECT_STREQ(text, "text");
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_F(TextFile, SaysBeforehandWhatNoFileCanBeCalled) {
  ASSERT_TRUE(write_text_file(folder_ / "file", "text").empty());
  for (const fs::path& path : {folder_, fs::path(), folder_ / "file" / "a", folder_ / "file" / "a" / "b"}) {
    EXPECT_TRUE(unwritable(path).has_errors()) << path;
    EXPECT_TRUE(write_text_file(path, "text").has_errors()) << path;
  }
  EXPECT_TRUE(no_folder(folder_ / "file").has_errors());
  for (const fs::path& path : {folder_ / "file", folder_ / "new" / "a", fs::path("here")})
    EXPECT_TRUE(unwritable(path).empty()) << path;
  EXPECT_EQ(text_of(folder_ / "file"), "text");
}

}  // namespace
}  // namespace specs
