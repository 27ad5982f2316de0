#include "specs/language/write_experiment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "specs/language/key_writer.h"
#include "specs/language/section_keys.h"
#include "specs/language/value_tree.h"

namespace specs {

std::string write_experiment_toml(const Experiment& experiment) {
  Experiment copy = experiment;  // visitors may change what they visit; this one does not
  KeyWriter writer;
  visit_keys(writer, copy);
  std::string text = writer.text();
  if (!experiment.sweep.empty()) text += "\n[sweep]\n";
  for (const SweepAxis& axis : experiment.sweep)
    text += fmt::format("{} = [{}]\n", toml_string(axis.path), fmt::join(axis.values, ", "));
  return text;
}

}  // namespace specs
