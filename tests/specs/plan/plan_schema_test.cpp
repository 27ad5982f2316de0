#include "specs/plan/plan_schema.h"

#include <cstdlib>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "specs/plan/json_text.h"

namespace specs {
namespace {

std::string read_file(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

/// The format is frozen: a change of the schema is reviewed, then written anew with UPDATE_GOLDEN=1.
TEST(PlanSchema, IsThePublishedOne) {
  const std::string path = "specs/plan/plan.schema.json";
  const std::string schema = json_text(plan_schema());
  if (std::getenv("UPDATE_GOLDEN") != nullptr) std::ofstream(path) << schema;
  EXPECT_EQ(schema, read_file(path))
      << "Where the change is meant, review it and run this test with UPDATE_GOLDEN=1.";
}

}  // namespace
}  // namespace specs
