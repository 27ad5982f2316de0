#include "runtime/launch/line_relay.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <string>
#include <thread>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "runtime/launch/line_prefix.h"

namespace runtime {
namespace {

class LineRelayTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(pipe(ends_.data()), 0); }
  void TearDown() override {
    close(ends_[0]);
    if (ends_[1] >= 0) close(ends_[1]);
  }
  int output() const { return ends_[1]; }
  /// All that was printed; nothing can be after it.
  std::string printed() {
    close(ends_[1]);
    ends_[1] = -1;
    return rest();
  }
  std::string rest() const {
    std::string text;
    std::array<char, 4096> buffer{};
    for (ssize_t got = 0; (got = read(ends_[0], buffer.data(), buffer.size())) > 0;)
      text.append(buffer.data(), static_cast<std::size_t>(got));
    return text;
  }
  std::array<int, 2> ends_{-1, -1};
};

TEST_F(LineRelayTest, PrintsWholeLinesOfSeveralRanksHoweverTheyArrive) {
  LineRelay first(output(), "a:rank 0: "), second(output(), "b:rank 1: ");
  first.feed("one");
  second.feed("two\nthree\nfo");
  first.feed(" and a half\n\n");
  second.feed("ur");
  second.finish();
  first.finish();
  EXPECT_EQ(printed(),
            "b:rank 1: two\nb:rank 1: three\na:rank 0: one and a half\na:rank 0: \nb:rank 1: four\n");
}

TEST_F(LineRelayTest, ALineLongerThanThePipeIsWholeWhereItDoesNotWait) {
  ASSERT_EQ(fcntl(output(), F_SETFL, O_NONBLOCK), 0);
  const std::string line(1 << 20, 'x');
  std::string read_back;
  std::thread reader([&] { read_back = rest(); });
  LineRelay(output(), "host:rank 3: ").feed(line + "\n");
  close(ends_[1]);
  ends_[1] = -1;
  reader.join();
  EXPECT_EQ(read_back, "host:rank 3: " + line + "\n");
}

TEST(LinePrefix, NamesHostAndRank) {
  EXPECT_THAT(line_prefix(12), testing::MatchesRegex("[^ :]+:rank 12: "));
}

TEST(LineRelay, TellsThatItsLinesAreLostOnAFullDiskAndNotThatNobodyReads) {
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(full, 0);
  LineRelay relay(full, "");
  EXPECT_EQ(relay.error(), 0);
  relay.feed("a line\n");
  EXPECT_EQ(relay.error(), ENOSPC);
  close(full);
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  close(ends[0]);
  const auto before = signal(SIGPIPE, SIG_IGN);
  LineRelay unread(ends[1], "");
  unread.feed("a line\n");
  EXPECT_EQ(unread.error(), 0);
  signal(SIGPIPE, before);
  close(ends[1]);
}

}  // namespace
}  // namespace runtime
