// Defaults that follow from other keys, filled in after all keys are read.
#pragma once

#include "specs/language/experiment.h"

namespace specs {

/// kv_heads, head_dim, ffn_hidden, expert widths, padding. What cannot be derived (hidden that heads do not
/// divide) stays 0 and is reported by the checks.
void fill_in(ModelSpec& model);

/// The model's, then sequence length, positions, steps and the drives of the nodes as storage.
void fill_in(Experiment& experiment);

}  // namespace specs
