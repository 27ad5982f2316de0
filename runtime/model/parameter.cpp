#include "runtime/model/parameter.h"

#include <numeric>

namespace runtime {

namespace {

std::int64_t product(const std::vector<std::int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

}  // namespace

ShardBox slice_of(const std::vector<std::int64_t>& full, std::int64_t dim, std::int64_t parts,
                  std::int64_t index) {
  ShardBox box{std::vector<std::int64_t>(full.size(), 0), full};
  const auto at = static_cast<std::size_t>(dim);
  box.extent[at] = full[at] / parts;
  box.offset[at] = box.extent[at] * index;
  return box;
}

std::int64_t Parameter::numel() const { return product(spec.local_shape); }
std::int64_t Parameter::valid_numel() const { return product(spec.box.extent); }

bool answers_for(const ParameterSpec& spec, const TensorPosition& position) {
  if (!spec.primary) return false;
  if (const auto* sharded = std::get_if<Sharded>(&spec.contract))
    return position.rank % sharded->replicas == 0;
  return position.rank == 0;
}

}  // namespace runtime
