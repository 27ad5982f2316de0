// The keys of every section of the experiment language and of the catalog's entries, each named once.
#pragma once

#include <string>

#include "specs/language/experiment.h"
#include "specs/language/key_visitor.h"
#include "specs/language/probe.h"
#include "specs/language/stack.h"

namespace specs {

void visit_keys(KeyVisitor& visitor, ModelSpec& model);
void visit_keys(KeyVisitor& visitor, DeviceSpec& device);
void visit_keys(KeyVisitor& visitor, NodeSpec& node);
void visit_keys(KeyVisitor& visitor, NetworkSpec& network);
void visit_keys(KeyVisitor& visitor, StorageSpec& storage);
void visit_keys(KeyVisitor& visitor, ClusterSpec& cluster);
void visit_keys(KeyVisitor& visitor, TrainingSpec& training);
void visit_keys(KeyVisitor& visitor, SearchSpec& search);
void visit_keys(KeyVisitor& visitor, StackSpec& stack);
void visit_keys(KeyVisitor& visitor, LocalhostProbe& probe);

/// Everything but `[sweep]`, whose keys are paths of the others.
void visit_keys(KeyVisitor& visitor, Experiment& experiment);

/// What a `[model]` starts from before a preset, a family or keys change it.
ModelSpec starting_model();

}  // namespace specs
