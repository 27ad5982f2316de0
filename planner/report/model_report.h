// What a model counts, as a report: for a model without an experiment around it.
#pragma once

#include "planner/report/report.h"
#include "specs/diagnostics/diagnostic.h"
#include "specs/language/model.h"

namespace planner {

/// Exact totals, active ones where experts make them fewer, and what `notes` says of how the model was read.
Report model_report(const specs::ModelSpec& model, const specs::Diagnostics& notes);

}  // namespace planner
