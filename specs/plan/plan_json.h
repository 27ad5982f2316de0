// plan.json: written, read back, and refused where it is not whole.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "specs/diagnostics/diagnostic.h"
#include "specs/plan/plan.h"

namespace specs {

/// The JSON pointer of the first number that is not finite, which no file can hold; empty where all are.
std::string non_finite_key(Plan plan);

/// The file's text: keys in a fixed order, equal stages folded, numbers that read back to the same value.
/// Requires finite numbers and values within the ranges of the schema.
std::string write_plan(const Plan& plan);

/// Reads and checks everything: JSON, format version, the published schema, and that the plan agrees with
/// itself (`plan_violations`). Each error names the place by line, column and JSON pointer.
Result<Plan> read_plan_text(std::string_view text, const std::string& name);

/// The same from a file. Errors also where it is not there or cannot be read.
Result<Plan> read_plan(const std::filesystem::path& path);

}  // namespace specs
