// Expected outputs in files. Run a test with UPDATE_GOLDENS=1 in the environment to write what it saw instead
// of comparing; review the difference before committing it.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

namespace tests {

inline std::string file_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

inline void expect_golden(const std::filesystem::path& path, const std::string& actual) {
  const char* update = std::getenv("UPDATE_GOLDENS");
  if (update != nullptr && std::string(update) == "1") {
    std::ofstream(path, std::ios::binary) << actual;
    return;
  }
  ASSERT_TRUE(std::filesystem::exists(path)) << path << " is missing; UPDATE_GOLDENS=1 writes it";
  EXPECT_EQ(actual, file_text(path)) << "differs from " << path << "; UPDATE_GOLDENS=1 accepts it";
}

}  // namespace tests
