#include "runtime/checkpoint/tensor_region.h"

#include <gmock/gmock.h>

namespace runtime {
namespace {

using testing::ElementsAre;

TensorRegion whole(std::vector<std::int64_t> offset, std::vector<std::int64_t> extent) {
  TensorRegion region{{std::move(offset), std::move(extent)}, 0, 0};
  region.end = box_size(region.box);
  return region;
}

TensorRegion part(TensorRegion region, std::int64_t begin, std::int64_t end) {
  region.begin = begin;
  region.end = end;
  return region;
}

/// Global element numbers of a region in a matrix with `columns` columns, in the region's order.
std::vector<std::int64_t> elements(const TensorRegion& region, std::int64_t columns) {
  std::vector<std::int64_t> numbers;
  const auto& [offset, extent] = region.box;
  for (std::int64_t i = region.begin; i < region.end; ++i)
    numbers.push_back((offset[0] + i / extent[1]) * columns + offset[1] + i % extent[1]);
  return numbers;
}

std::vector<TensorRegion> some_regions() {
  std::vector<TensorRegion> regions;
  for (const auto& [row, rows] : {std::pair{0, 6}, {0, 3}, {3, 3}, {2, 3}})
    for (const auto& [column, columns] : {std::pair{0, 5}, {0, 2}, {2, 3}, {1, 3}}) {
      const TensorRegion box = whole({row, column}, {rows, columns});
      regions.push_back(box);
      regions.push_back(part(box, 0, box.end / 2));
      regions.push_back(part(box, box.end / 2, box.end));
      regions.push_back(part(box, 1, box.end - 1));
    }
  return regions;
}

TEST(TensorRegion, SharedRunsNameExactlyTheCommonElements) {
  const auto regions = some_regions();
  for (const TensorRegion& source : regions)
    for (const TensorRegion& target : regions) {
      const auto from = elements(source, 5), to = elements(target, 5);
      std::vector<std::int64_t> shared;
      std::int64_t last = -1;
      for (const SharedRun& run : shared_runs(source, target)) {
        EXPECT_GT(run.count, 0);
        EXPECT_GT(run.in_target, last);
        last = run.in_target + run.count - 1;
        for (std::int64_t i = 0; i < run.count; ++i) {
          ASSERT_EQ(from.at(static_cast<std::size_t>(run.in_source + i)),
                    to.at(static_cast<std::size_t>(run.in_target + i)));
          shared.push_back(to[static_cast<std::size_t>(run.in_target + i)]);
        }
      }
      std::vector<std::int64_t> expected;
      for (const std::int64_t number : to)
        if (std::find(from.begin(), from.end(), number) != from.end()) expected.push_back(number);
      ASSERT_EQ(shared, expected);
    }
}

TEST(TensorRegion, RowsThatAreWholeInBothMakeOneRun) {
  EXPECT_THAT(shared_runs(whole({0, 0}, {8, 4}), whole({2, 0}, {3, 4})), ElementsAre(SharedRun{8, 0, 12}));
  EXPECT_THAT(shared_runs(part(whole({0}, {10}), 3, 9), whole({5}, {5})), ElementsAre(SharedRun{2, 0, 4}));
}

TEST(TensorRegion, WorksWithOneAndThreeDims) {
  EXPECT_TRUE(shared_runs(whole({0}, {4}), whole({4}, {4})).empty());
  EXPECT_THAT(shared_runs(whole({0, 0, 0}, {2, 2, 3}), whole({1, 0, 1}, {1, 2, 2})),
              ElementsAre(SharedRun{7, 0, 2}, SharedRun{10, 2, 2}));
}

TEST(Cover, TakesEachElementOnceThoughSourcesOverlap) {
  const auto regions = some_regions();
  for (const TensorRegion& target : regions) {
    const Coverage coverage = cover(target, regions);
    EXPECT_EQ(coverage.missing, 0);
    std::int64_t next = 0;
    for (const auto& [source, run] : coverage.runs) {
      EXPECT_EQ(run.in_target, next);
      next += run.count;
      const auto from = elements(regions[source], 5), to = elements(target, 5);
      EXPECT_EQ(from.at(static_cast<std::size_t>(run.in_source)),
                to.at(static_cast<std::size_t>(run.in_target)));
    }
    EXPECT_EQ(next, target.size());
  }
}

TEST(Cover, CountsWhatIsMissing) {
  const TensorRegion target = whole({0, 0}, {4, 4});
  EXPECT_EQ(cover(target, {}).missing, 16);
  EXPECT_EQ(cover(target, {whole({0, 0}, {2, 4})}).missing, 8);
  EXPECT_EQ(cover(target, {whole({0, 0}, {4, 2}), whole({1, 2}, {2, 2})}).missing, 4);
}

}  // namespace
}  // namespace runtime
