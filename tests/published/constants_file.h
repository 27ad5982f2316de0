// Writes fitted constants back into the catalog's files.
#pragma once

#include <filesystem>

#include "cost_models/constants.h"

namespace published {

/// Replaces the value of each constant in the *.toml files of `folder`, leaving every other line as it is.
void write_constants(const cost_models::ConstantTable& constants, const std::filesystem::path& folder);

/// All *.toml files of `folder` in place of the compiled-in ones.
cost_models::ConstantTable read_constants(const std::filesystem::path& folder);

}  // namespace published
