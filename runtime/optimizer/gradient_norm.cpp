#include "runtime/optimizer/gradient_norm.h"

#include <algorithm>
#include <variant>

#include "runtime/data_parallel/gradient_reducer.h"
#include "runtime/optimizer/update_kernels.h"

namespace runtime {

namespace {

bool counts(const ParameterSpec& spec, const Mesh& mesh, const FaultSwitches& faults) {
  if (faults.count_tied_twice && spec.tied && !spec.primary) return true;
  if (faults.count_replicas_twice && std::holds_alternative<Replicated>(spec.contract)) return true;
  return answers_for(spec, {mesh.tensor().rank(), mesh.tensor().size()});
}

}  // namespace

double squared_norm_share(const ParameterRegistry& registry, const Mesh& mesh, const Sharding& sharding,
                          const FaultSwitches& faults) {
  double total = 0;
  for (const Bucket& bucket : registry.buckets()) {
    const auto add = [&](const BucketRange& range) {
      total +=
          sum_of_squares(bucket.gradient_shard.narrow(0, range.begin - bucket.shard.begin, range.size()));
    };
    const BucketRange mine = bucket.shard.part(sharding.holders->rank(), sharding.holders->size());
    if (faults.padding_in_norm) {
      add(mine);
      continue;
    }
    for (const ParameterBlock* block : bucket.blocks)
      for (const Parameter& parameter : block->parameters()) {
        if (!counts(parameter.spec, mesh, faults)) continue;
        const BucketRange part = overlap(parameter, mine);
        const std::int64_t offset = parameter.bucket_offset;
        if (part.size() > 0) add({offset + part.begin, offset + part.end});
      }
  }
  return total;
}

double clip_coefficient(double norm, double limit) {
  return limit > 0 ? std::min(1.0, limit / (norm + 1e-6)) : 1.0;
}

}  // namespace runtime
