// Catalog entries as the experiment reader uses them: loaded into a section before the user's keys change it.
#pragma once

#include <string>

#include "specs/diagnostics/diagnostic.h"
#include "specs/language/cluster.h"
#include "specs/language/model.h"

namespace specs {

/// Replaces the value by the entry of that name. Entries are known to be well formed; what is reported is an
/// unknown name, and notes on `localhost`.
Diagnostics load_entry(const std::string& name, DeviceSpec& device);
Diagnostics load_entry(const std::string& name, NodeSpec& node);
Diagnostics load_entry(const std::string& name, NetworkSpec& network);
Diagnostics load_entry(const std::string& name, StorageSpec& storage);
/// Defaults that follow from other keys are not filled in, since the user's keys may still change those.
Diagnostics load_entry(const std::string& name, ModelSpec& model);

/// A group that says nothing of its node is `localhost`; the network is the usual one of the first node, the
/// storage the nodes' own drives, failures and electricity at the catalog's rates.
void fill_in_nodes_and_network(ClusterSpec& cluster);

}  // namespace specs
