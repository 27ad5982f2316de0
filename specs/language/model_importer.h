// How `[model] import = "config.json"` becomes a model. The formats of other tools are read by
// specs/interchange, which stands above this room, so the reader is handed in.
#pragma once

#include <filesystem>
#include <functional>

#include "specs/diagnostics/diagnostic.h"
#include "specs/language/model.h"

namespace specs {

using ModelImporter = std::function<Result<ModelSpec>(const std::filesystem::path& path)>;

}  // namespace specs
