// A report as JSON: one object, a key a section; facts become an object, tables an array of objects, notes an
// array of texts. Numbers are not rounded; an empty cell is null.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "planner/report/report.h"

namespace cli {

nlohmann::ordered_json to_json(const planner::Report& report);

}  // namespace cli
