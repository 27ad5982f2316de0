// One catalog entry with all its values, as the TOML that an experiment could hold in its place.
#pragma once

#include <string>
#include <string_view>

#include "specs/diagnostics/diagnostic.h"
#include "specs/language/catalog.h"

namespace specs {

/// Headed by comments with its name, description and source.
Result<std::string> catalog_entry_toml(CatalogKind kind, std::string_view name);

}  // namespace specs
