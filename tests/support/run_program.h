// Runs a program as a user would, through the shell, and returns what it did.
#pragma once

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include <sys/wait.h>

#include "tests/support/temporary_folder.h"

namespace tests {

struct ProgramRun {
  int exit_code = -1;
  std::string out;
  std::string err;
};

/// `command` is a shell command line; nothing reaches the test's own output.
inline ProgramRun run_program(const std::string& command) {
  const TemporaryFolder folder;
  const std::string out = (folder.path() / "out").string();
  const std::string err = (folder.path() / "err").string();
  const std::string whole = command + " >" + out + " 2>" + err + " </dev/null";
  const int status = std::system(whole.c_str());
  const auto text_of = [](const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
  };
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text_of(out), text_of(err)};
}

}  // namespace tests
