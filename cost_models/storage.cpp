#include "cost_models/storage.h"

#include <algorithm>

namespace cost_models {

double checkpoint_bytes_per_second(const specs::StorageSpec& storage, double nodes) {
  const double of_nodes = storage.node_write_bytes_per_second * nodes;
  const double of_system = storage.write_bytes_per_second;
  if (of_system <= 0) return of_nodes;
  return of_nodes <= 0 ? of_system : std::min(of_nodes, of_system);
}

double checkpoint_write_seconds(double bytes, const specs::StorageSpec& storage, double nodes) {
  const double rate = checkpoint_bytes_per_second(storage, nodes);
  return rate > 0 ? bytes / rate : 0;
}

}  // namespace cost_models
