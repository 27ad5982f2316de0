#include <algorithm>

#include "specs/language/catalog.h"
#include "specs/language/catalog_entries.h"
#include "specs/language/section_keys.h"

namespace specs {

namespace {

/// bf16 where all devices have it, else fp16; fp32 on CPUs, where the 16-bit formats are slower.
Precision usual_precision(const ClusterSpec& cluster) {
  for (const Precision precision : {Precision::bf16, Precision::fp16}) {
    const bool usual =
        std::all_of(cluster.groups.begin(), cluster.groups.end(), [precision](const ClusterGroup& group) {
          const DeviceSpec& device = group.node.device;
          return device.generation != "cpu" && device.peak_flops.contains(precision);
        });
    if (usual) return precision;
  }
  return Precision::fp32;
}

}  // namespace

void visit_keys(KeyVisitor& visitor, Experiment& experiment) {
  visitor.text({"name", "of the experiment", "the file's stem"}, experiment.name);
  visitor.named_table({"model", "the transformer"},
                      {"model", catalog_names(CatalogKind::model),
                       [&experiment](const std::string& name) { return load_entry(name, experiment.model); }},
                      [&experiment](KeyVisitor& keys) { visit_keys(keys, experiment.model); });
  visitor.table({"cluster", "the machines"},
                [&experiment](KeyVisitor& keys) { visit_keys(keys, experiment.cluster); });
  if (visitor.reads()) experiment.training.precision = usual_precision(experiment.cluster);
  visitor.table({"training", "the recipe"},
                [&experiment](KeyVisitor& keys) { visit_keys(keys, experiment.training); });
  visitor.table({"search", "what may vary; a list that is not given leaves its dimension free"},
                [&experiment](KeyVisitor& keys) { visit_keys(keys, experiment.search); });
}

}  // namespace specs
