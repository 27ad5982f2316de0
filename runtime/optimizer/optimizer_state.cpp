#include "runtime/optimizer/optimizer_state.h"

#include <algorithm>
#include <optional>

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "runtime/model/initialization.h"
#include "runtime/monitor/memory_class.h"

namespace runtime {

namespace {

std::vector<std::string> moment_names(specs::OptimizerKind kind) {
  if (kind == specs::OptimizerKind::sgd) return {"momentum"};
  return {"exp_avg", "exp_avg_sq"};
}

at::Tensor zeros_of_class(specs::MemoryClass memory_class, std::int64_t numel, at::ScalarType type) {
  const MemoryClassScope scope(memory_class);
  return at::zeros({numel}, type);
}

void make_slices(const Bucket& bucket, StatePart& part) {
  for (const ParameterBlock* block : bucket.blocks)
    for (const Parameter& parameter : block->parameters()) {
      const BucketRange piece = overlap(parameter, part.range);
      if (piece.size() == 0) continue;
      const std::int64_t first = parameter.bucket_offset + piece.begin - part.range.begin;
      StateSlice slice{&parameter,
                       piece.begin,
                       piece.end,
                       part.weight.narrow(0, first, piece.size()),
                       part.gradient.narrow(0, first, piece.size()),
                       {}};
      for (const auto& [name, moment] : part.moments)
        slice.moments.emplace_back(name, moment.narrow(0, first, piece.size()));
      part.slices.push_back(std::move(slice));
    }
}

StatePart make_part(const Bucket& bucket, const BucketRange& range, bool on_host, specs::OptimizerKind kind,
                    const StateLayout& layout, std::uint64_t seed) {
  StatePart part;
  part.range = range;
  part.on_host = on_host;
  const std::int64_t numel = range.size();
  part.parameter = bucket.value_shard.narrow(0, range.begin - bucket.shard.begin, numel);
  part.device_gradient = bucket.gradient_shard.narrow(0, range.begin - bucket.shard.begin, numel);
  const at::ScalarType type =
      part.parameter.element_size() == 2 ? at::ScalarType::Float : part.parameter.scalar_type();
  const bool own_copy = on_host && !layout.aliases_device;
  const std::optional<HostMemoryScope> host =
      own_copy ? std::optional<HostMemoryScope>(std::in_place) : std::nullopt;
  part.weight = own_copy || type != part.parameter.scalar_type()
                    ? zeros_of_class(specs::MemoryClass::master_weights, numel, type)
                    : part.parameter;
  part.gradient =
      own_copy ? zeros_of_class(specs::MemoryClass::gradients, numel, part.device_gradient.scalar_type())
               : part.device_gradient;
  for (const std::string& name : moment_names(kind))
    part.moments.emplace_back(name, zeros_of_class(specs::MemoryClass::optimizer_state, numel, type));
  make_slices(bucket, part);
  if (part.has_master())
    for (const StateSlice& slice : part.slices)
      fill_initial(slice.parameter->spec, seed, slice.begin, slice.weight);
  return part;
}

}  // namespace

std::vector<StatePart> make_optimizer_state(const ParameterRegistry& registry, specs::OptimizerKind kind,
                                            const StateLayout& layout, std::uint64_t seed) {
  std::vector<StatePart> parts;
  for (std::size_t index = 0; index < registry.buckets().size(); ++index) {
    const Bucket& bucket = registry.buckets()[index];
    const BucketRange own = bucket.shard;
    const std::int64_t eighths = layout.eighths_on_host.empty()
                                     ? 0
                                     : layout.eighths_on_host[static_cast<std::size_t>(bucket.unit.stage)];
    const std::int64_t border = own.begin + own.size() * eighths / 8;
    for (const bool on_host : {true, false}) {
      const BucketRange range = on_host ? BucketRange{own.begin, border} : BucketRange{border, own.end};
      if (range.size() == 0) continue;
      parts.push_back(make_part(bucket, range, on_host, kind, layout, seed));
      parts.back().bucket = index;
    }
  }
  return parts;
}

}  // namespace runtime
