// What holds for every source of the tree: which room may include which, who may see LibTorch, where
// tests may write, how long a file may be.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace architecture {

/// What is wrong with the source `text` at `path` (relative to the root of the tree, with slashes), one line
/// for each finding: path:line, what was found, what is allowed.
std::vector<std::string> broken_rules(std::string_view path, std::string_view text);

}  // namespace architecture
