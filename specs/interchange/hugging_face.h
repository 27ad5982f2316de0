// A model from a Hugging Face `config.json`, exact to the last parameter.
//
// What a configuration leaves out takes the default of its configuration class in transformers, as the
// library itself would; an architecture that is not known is refused by its `model_type`, never counted as
// another.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "specs/diagnostics/diagnostic.h"
#include "specs/language/model.h"

namespace specs {

/// Errors: not JSON, wrong types, an unknown `model_type`. Notes: class defaults that were used, the text
/// part of a model of several kinds of input, prediction layers that are not counted.
Result<ModelSpec> import_hugging_face_text(std::string_view text, const std::string& file_name);
Result<ModelSpec> import_hugging_face(const std::filesystem::path& path);

/// The `model_type`s that are read.
std::vector<std::string> hugging_face_model_types();

}  // namespace specs
