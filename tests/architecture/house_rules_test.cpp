#include "tests/architecture/house_rules.h"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace architecture {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Headers that stand in for those of other libraries keep the names that those have.
bool stands_in(const std::string& path) {
  return path.starts_with("runtime/comm/gloo_headers/") || path.starts_with("runtime/comm/cuda_headers/");
}

TEST(HouseRules, HoldForEverySource) {
  std::size_t sources = 0;
  for (const char* root : {"specs", "cost_models", "planner", "runtime", "cli", "tests", "bench"}) {
    if (!std::filesystem::exists(root)) continue;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
      const std::string path = entry.path().generic_string();
      if (!(path.ends_with(".h") || path.ends_with(".cpp")) || stands_in(path)) continue;
      ++sources;
      std::ostringstream text;
      text << std::ifstream(entry.path()).rdbuf();
      for (const std::string& finding : broken_rules(path, text.str())) ADD_FAILURE() << finding;
    }
  }
  EXPECT_GT(sources, 100U) << "run from the root of the source tree";
}

TEST(HouseRules, LetARoomSeeTheOnesBelowIt) {
  EXPECT_THAT(broken_rules("planner/search.cpp",
                           "#include <vector>\n#include <llvm/ADT/SmallVector.h>\n"
                           "#include \"cost_models/memory.h\"\n"
                           "#include \"specs/plan/plan.h\"\n"),
              IsEmpty());
  EXPECT_THAT(broken_rules("runtime/mesh/mesh.cpp", "#include <ATen/core/Tensor.h>\n"), IsEmpty());
  EXPECT_THAT(
      broken_rules("cli/dsrun/main.cpp", "#include \"cli/version.h\"\n#include \"runtime/version.h\"\n"),
      IsEmpty());
}

TEST(HouseRules, KeepTheRuntimeAndThePlannerApart) {
  EXPECT_THAT(broken_rules("runtime/mesh/mesh.cpp", "\n#include \"planner/space.h\"\n"),
              ElementsAre(HasSubstr("runtime/mesh/mesh.cpp:2: 'planner/space.h' may not be included")));
  EXPECT_THAT(broken_rules("runtime/mesh/mesh.cpp", "#include \"cost_models/memory.h\"\n").size(), 1U);
  EXPECT_THAT(broken_rules("planner/space.cpp", "#include \"runtime/mesh/mesh.h\"\n").size(), 1U);
  EXPECT_THAT(broken_rules("cli/dsplan/main.cpp", "#include \"runtime/version.h\"\n").size(), 1U);
  EXPECT_THAT(broken_rules("cli/dsrun/main.cpp", "#include \"planner/space.h\"\n").size(), 1U);
  EXPECT_THAT(broken_rules("cli/dsrun/main.cpp", "#include \"cli/dsplan/plan.h\"\n").size(), 1U);
  EXPECT_THAT(broken_rules("tests/runtime/mesh/mesh_test.cpp", "#include \"planner/space.h\"\n").size(), 1U);
}

TEST(HouseRules, KeepSpecsOneWay) {
  EXPECT_THAT(broken_rules("specs/language/model.h", "#pragma once\n#include \"specs/plan/plan.h\"\n").size(),
              1U);
  EXPECT_THAT(broken_rules("specs/schedule/text.cpp", "#include \"specs/language/model.h\"\n").size(), 1U);
  EXPECT_THAT(
      broken_rules("specs/diagnostics/diagnostic.cpp", "#include \"specs/catalog/embedded_file.h\"\n").size(),
      1U);
  EXPECT_THAT(broken_rules("cost_models/memory.cpp", "#include \"planner/space.h\"\n").size(), 1U);
}

TEST(HouseRules, KeepLibTorchOutOfThePlannerSide) {
  for (const char* header : {"torch/torch.h", "ATen/ATen.h", "c10/core/Device.h"}) {
    const std::string line = "#include <" + std::string(header) + ">\n";
    EXPECT_THAT(broken_rules("planner/space.cpp", line), ElementsAre(HasSubstr("LibTorch")));
    EXPECT_THAT(broken_rules("tests/planner/space_test.cpp", line), ElementsAre(HasSubstr("LibTorch")));
    EXPECT_THAT(broken_rules("tests/runtime/mesh/mesh_test.cpp", line), IsEmpty());
  }
}

TEST(HouseRules, WantIncludesFromTheRoot) {
  EXPECT_THAT(broken_rules("planner/space.cpp", "#include \"../specs/plan/plan.h\"\n").size(), 1U);
  EXPECT_THAT(broken_rules("planner/space.cpp", "#include \"space.h\"\n").size(), 1U);
  EXPECT_THAT(broken_rules("planner/space.cpp", "#include <specs/plan/plan.h>\n").size(), 1U);
}

TEST(HouseRules, LetTestsWriteInFoldersOfTheirOwnAlone) {
  const std::string line = "const auto folder = std::filesystem::temp_directory_path() / \"mine\";\n";
  EXPECT_THAT(broken_rules("tests/e2e/process.cpp", line), ElementsAre(HasSubstr("TemporaryFolder")));
  EXPECT_THAT(broken_rules("tests/support/temporary_folder.h", "#pragma once\n" + line), IsEmpty());
  EXPECT_THAT(broken_rules("specs/language/text_file.cpp", line), IsEmpty());
}

TEST(HouseRules, RefuseUnknownRoomsLongFilesAndUnguardedHeaders) {
  EXPECT_THAT(broken_rules("helpers/strings.cpp", "").size(), 1U);
  EXPECT_THAT(broken_rules("planner/space.h", "\n"), ElementsAre(HasSubstr("#pragma once")));
  std::string text;
  for (int line = 0; line < 600; ++line) text += "\n";
  EXPECT_THAT(broken_rules("planner/space.cpp", text), IsEmpty());
  EXPECT_THAT(broken_rules("planner/space.cpp", text + "\n"), ElementsAre(HasSubstr("601 lines")));
}

}  // namespace
}  // namespace architecture
