#include "planner/space/restrictions.h"

#include <gtest/gtest.h>

#include "specs/language/section_keys.h"
#include "tests/specs/language/random_filler.h"

namespace planner {
namespace {

TEST(Restrictions, AreAllKeysOfSearchButThoseThatOnlyAddCandidatesOrNameTheObjective) {
  for (unsigned round = 0; round < 20; ++round) {
    specs::SearchSpec search;
    ::tests::RandomFiller filler(round);
    visit_keys(filler, search);
    for (const Restriction& restriction : all_restrictions()) restriction.lift(search);
    EXPECT_TRUE(restrictions_of(search).empty());
    specs::SearchSpec free;
    free.objective = search.objective;
    free.idle_nodes = search.idle_nodes;
    free.unequal_stage_meshes = search.unequal_stage_meshes;
    EXPECT_EQ(search, free);
  }
}

TEST(Restrictions, AreNamedAsTheyAreWritten) {
  specs::SearchSpec search;
  search.schedule = {specs::ScheduleKind::interleaved};
  search.offload_optimizer = {specs::OffloadDevice::none, specs::OffloadDevice::cpu};
  search.uneven_stages = false;
  const std::vector<const Restriction*> set = restrictions_of(search);
  ASSERT_EQ(set.size(), 3u);
  EXPECT_EQ(words_of(*set[0], search), "search.schedule = [\"interleaved\"]");
  EXPECT_EQ(words_of(*set[1], search), "search.offload_optimizer = [\"none\", \"cpu\"]");
  EXPECT_EQ(words_of(*set[2], search), "search.uneven_stages = false");
}

}  // namespace
}  // namespace planner
