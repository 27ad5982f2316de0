#include "planner/report/model_report.h"

#include <fmt/format.h>

#include "cost_models/parameters.h"

namespace planner {

Report model_report(const specs::ModelSpec& model, const specs::Diagnostics& notes) {
  Report report;
  Facts facts{"", fmt::format("Parameters of {}", model.name), {}};
  const auto count = [&facts](const char* key, const char* title, std::int64_t value, std::string note = {}) {
    facts.facts.push_back({key, title, Quantity::count, value, std::move(note)});
  };
  facts.facts.push_back({"model", "model", Quantity::text, model.name, {}});
  const std::int64_t total = cost_models::total_parameters(model);
  const std::int64_t active = cost_models::active_parameters(model);
  count("total_parameters", "total", total);
  count("active_parameters", "active", active,
        active < total ? "a token passes through, tables included" : "");
  if (model.encoder_layers > 0) count("encoder_layers", "encoder layers", model.encoder_layers);
  count("layers", "layers", model.layers);
  count("hidden", "hidden size", model.hidden);
  count("vocabulary", "vocabulary", model.vocabulary);
  report.sections.push_back(std::move(facts));
  Notes said{"notes", "How it was read", {}};
  for (const specs::Diagnostic& note : notes.entries()) said.lines.push_back(note.message);
  if (!said.lines.empty()) report.sections.push_back(std::move(said));
  return report;
}

}  // namespace planner
