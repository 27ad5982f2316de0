// An experiment as TOML with every key written out; reading it back gives an equal value.
#pragma once

#include <string>

#include "specs/language/experiment.h"

namespace specs {

std::string write_experiment_toml(const Experiment& experiment);

}  // namespace specs
