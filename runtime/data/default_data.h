// The text that a run trains on when it is given none.
#pragma once

#include <filesystem>
#include <optional>

namespace runtime {

/// LibTorch's own C++ headers: megabytes of real text on every machine that can run this. The include/ beside
/// the lib/ that libtorch_cpu was loaded from, else the one that the program was built with; nothing where
/// neither is there.
std::optional<std::filesystem::path> default_data();

}  // namespace runtime
