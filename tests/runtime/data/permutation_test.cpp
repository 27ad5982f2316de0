#include "runtime/data/permutation.h"

#include <numeric>
#include <vector>

#include <gtest/gtest.h>

namespace runtime {
namespace {

std::vector<std::int64_t> values(std::int64_t size, std::uint64_t key) {
  const Permutation permutation(size, key);
  std::vector<std::int64_t> values(static_cast<std::size_t>(size));
  for (std::int64_t i = 0; i < size; ++i) values[static_cast<std::size_t>(i)] = permutation(i);
  return values;
}

TEST(Permutation, IsABijectionForEverySizeUpTo300AndSomeLargeOnes) {
  std::vector<std::int64_t> sizes(300);
  std::iota(sizes.begin(), sizes.end(), 1);
  sizes.insert(sizes.end(), {1023, 1024, 1025, 4097, 65536, 100003});
  for (const std::int64_t size : sizes) {
    std::vector<bool> seen(static_cast<std::size_t>(size), false);
    for (const std::int64_t value : values(size, 7)) {
      ASSERT_GE(value, 0);
      ASSERT_LT(value, size);
      ASSERT_FALSE(seen[static_cast<std::size_t>(value)]) << "size " << size << " value " << value;
      seen[static_cast<std::size_t>(value)] = true;
    }
  }
}

TEST(Permutation, StaysInsideAtSizesThatNoMemoryWouldHold) {
  const std::int64_t size = (std::int64_t{1} << 40) + 12345;
  const Permutation permutation(size, 1);
  for (std::int64_t i = 0; i < 1000; ++i) {
    const std::int64_t value = permutation(i * 1'000'003 % size);
    EXPECT_GE(value, 0);
    EXPECT_LT(value, size);
  }
}

TEST(Permutation, DependsOnItsKey) { EXPECT_NE(values(1000, 1), values(1000, 2)); }

TEST(Permutation, LeavesAboutOnePlaceFixedAndNeighboursApart) {
  const std::vector<std::int64_t> order = values(100'000, 3);
  std::int64_t fixed = 0, adjacent = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    fixed += order[i] == static_cast<std::int64_t>(i) ? 1 : 0;
    if (i > 0) adjacent += std::abs(order[i] - order[i - 1]) == 1 ? 1 : 0;
  }
  // A random order has 1 and 2 of them on average (Poisson).
  EXPECT_LT(fixed, 10);
  EXPECT_LT(adjacent, 12);
}

}  // namespace
}  // namespace runtime
