// Files that are whole or not there.
#pragma once

#include <filesystem>
#include <string_view>

#include "specs/diagnostics/diagnostic.h"

namespace cli {

/// Writes beside the path and renames. An empty result is success; on an error nothing stands at the path
/// that did not before.
specs::Diagnostics write_file(const std::filesystem::path& path, std::string_view text);

}  // namespace cli
