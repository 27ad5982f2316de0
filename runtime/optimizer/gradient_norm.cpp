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

double squared_norm_share(const ParameterRegistry& registry, const Mesh& mesh, const FaultSwitches& faults) {
  double total = 0;
  for (const Bucket& bucket : registry.buckets()) {
    const BucketRange shard = shard_of(bucket, mesh.gradient().rank(), mesh.gradient().size());
    for (const ParameterBlock* block : bucket.blocks)
      for (const Parameter& parameter : block->parameters()) {
        if (!counts(parameter.spec, mesh, faults)) continue;
        const std::int64_t begin = std::max(shard.begin, parameter.bucket_offset);
        const std::int64_t end = std::min(shard.end, parameter.bucket_offset + parameter.valid_numel());
        if (begin < end) total += sum_of_squares(bucket.gradients.narrow(0, begin, end - begin));
      }
  }
  return total;
}

double clip_coefficient(double norm, double limit) {
  return limit > 0 ? std::min(1.0, limit / (norm + 1e-6)) : 1.0;
}

}  // namespace runtime
