#include "planner/space/placement_hash.h"

namespace planner {

std::size_t hash_of(const specs::RegularPlacement& point) {
  const auto share = [](const specs::OffloadTreatment& treatment) {
    return static_cast<std::int64_t>(treatment.device) * 16 + treatment.eighths;
  };
  const specs::ModuleTreatments& modules = point.modules;
  std::size_t hash = 0;
  for (const std::int64_t number :
       {modules.attention_tensor + 1024 * modules.feed_forward_tensor,
        modules.embedding_tensor + 1024 * modules.output_tensor,
        static_cast<std::int64_t>(modules.output_mode) * 8 +
            static_cast<std::int64_t>(modules.feed_forward_work) * 4 +
            static_cast<std::int64_t>(modules.embedding_work) * 2 +
            static_cast<std::int64_t>(point.offload.delayed_update),
        point.micro_batch_group, point.local_steps, static_cast<std::int64_t>(point.zero.scope), point.tensor,
        point.context, point.pipeline, point.data, point.expert, point.expert_tensor,
        static_cast<std::int64_t>(point.order.back()), point.micro_batch, point.virtual_stages,
        static_cast<std::int64_t>(point.schedule) * 64 + static_cast<std::int64_t>(point.recomputation) * 16 +
            static_cast<std::int64_t>(point.sequence_parallel) * 8 + point.zero.stage,
        (share(point.offload.optimizer) * 64 + share(point.offload.parameters)) * 64 +
            share(point.offload.activations)})
    hash = (hash ^ static_cast<std::size_t>(number)) * 0x9E3779B97F4A7C15ull;
  return hash;
}

}  // namespace planner
