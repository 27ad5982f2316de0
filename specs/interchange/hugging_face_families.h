// One reader per family of architectures in transformers.
#pragma once

#include <string_view>

#include "specs/interchange/json_config.h"
#include "specs/language/model.h"

namespace specs {

using FamilyReader = void (*)(JsonConfig& config, ModelSpec& model);

/// The reader of a `model_type`; null where it is not known.
FamilyReader family_reader(std::string_view model_type);
std::vector<std::string> family_names();

}  // namespace specs
