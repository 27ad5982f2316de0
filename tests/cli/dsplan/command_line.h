// Command lines in files that tests run.
#pragma once

#include <string>
#include <vector>

namespace tests {

/// Splits at spaces; '…' keeps spaces together.
inline std::vector<std::string> arguments_of(const std::string& command) {
  std::vector<std::string> arguments;
  bool quoted = false, open = false;
  for (const char letter : command) {
    if (letter == '\'') {
      quoted = !quoted;
      if (!open) arguments.emplace_back();
      open = true;
    } else if (letter == ' ' && !quoted) {
      open = false;
    } else {
      if (!open) arguments.emplace_back();
      open = true;
      arguments.back() += letter;
    }
  }
  return arguments;
}

}  // namespace tests
