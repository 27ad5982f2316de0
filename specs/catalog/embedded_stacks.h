// The software stacks of the catalog, one TOML file each, compiled in from specs/catalog/stacks.
#pragma once

#include <span>

#include "specs/catalog/embedded_file.h"

namespace specs {

std::span<const EmbeddedFile> embedded_stacks();

}  // namespace specs
