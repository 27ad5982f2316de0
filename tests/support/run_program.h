// Runs a program as a user would, through the shell, and returns what it did.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <sys/wait.h>
#include <unistd.h>

namespace tests {

struct ProgramRun {
  int exit_code = -1;
  std::string out;
  std::string err;
};

/// `command` is a shell command line; nothing reaches the test's own output.
inline ProgramRun run_program(const std::string& command) {
  const std::string stem =
      (std::filesystem::temp_directory_path() / ("dsplan-test-" + std::to_string(::getpid()))).string();
  const std::string whole = command + " >" + stem + ".out 2>" + stem + ".err </dev/null";
  const int status = std::system(whole.c_str());
  const auto taken = [](const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    std::filesystem::remove(path);
    return text.str();
  };
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, taken(stem + ".out"), taken(stem + ".err")};
}

}  // namespace tests
