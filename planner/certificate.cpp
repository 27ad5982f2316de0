#include "planner/certificate.h"

#include <fmt/format.h>

#include "planner/report/quantity.h"

namespace planner {
namespace {

using specs::name_of;

void describe_offload(std::string& text, std::string_view name, const specs::OffloadTreatment& offload) {
  if (offload.device != specs::OffloadDevice::none)
    text += fmt::format(" {}={}:{}/8", name, name_of(offload.device), offload.eighths);
}

std::vector<specs::RegionDimension> dimensions_of(const MeshDegrees& mesh, bool has_experts) {
  std::vector<specs::RegionDimension> dimensions;
  const auto add = [&](std::string name, std::int64_t value) {
    dimensions.push_back({std::move(name), {std::to_string(value)}});
  };
  add("tensor", mesh.tensor);
  add("context", mesh.context);
  add("pipeline", mesh.pipeline);
  add("data", mesh.data);
  if (has_experts) {
    add("expert", mesh.expert);
    add("expert_tensor", mesh.expert_tensor);
  }
  return dimensions;
}

}  // namespace

std::string describe_inside_mesh(const specs::RegularPlacement& placement) {
  std::string text = fmt::format("micro_batch={}", placement.micro_batch);
  if (placement.pipeline > 1) text += fmt::format(" schedule={}", name_of(placement.schedule));
  if (placement.virtual_stages > 1) text += fmt::format(" virtual_stages={}", placement.virtual_stages);
  text += fmt::format(" recomputation={}", name_of(placement.recomputation));
  if (placement.tensor > 1) text += fmt::format(" sequence_parallel={}", placement.sequence_parallel);
  text += fmt::format(" zero_stage={}", placement.zero.stage);
  if (placement.zero.scope != specs::ShardScope::world)
    text += fmt::format(" shard_scope={}", name_of(placement.zero.scope));
  describe_offload(text, "offload_optimizer", placement.offload.optimizer);
  describe_offload(text, "offload_parameters", placement.offload.parameters);
  describe_offload(text, "offload_activations", placement.offload.activations);
  return text;
}

std::string memory_equation(Constraint constraint, const Price& price, const Pricer& pricer) {
  const bool device = constraint == Constraint::device_memory;
  const std::int64_t needed = device ? price.peak_device_bytes : price.peak_host_bytes_per_node;
  const std::int64_t usable = device ? pricer.usable_device_bytes() : pricer.usable_host_bytes();
  return fmt::format("{}: needs {} of {} a {}", name_of(constraint),
                     format_bytes(static_cast<double>(needed)), format_bytes(static_cast<double>(usable)),
                     device ? "device" : "node");
}

specs::Certificate certificate_of(const Space& space, const SearchResult& result, const Pricer& pricer) {
  specs::Certificate certificate;
  certificate.space_candidates = std::to_string(space.candidates());
  certificate.priced_candidates = std::to_string(result.priced());
  certificate.infeasible_candidates = std::to_string(result.infeasible());
  certificate.bounded_candidates = "0";
  certificate.gap = 0;
  certificate.complete = result.complete;
  certificate.method = "exhaustive";
  for (const RegionResult& region : result.regions) {
    const std::vector<specs::RegionDimension> dimensions = dimensions_of(region.mesh, space.has_experts());
    if (region.priced > 0)
      certificate.regions.push_back({.kind = specs::RegionKind::priced,
                                     .dimensions = dimensions,
                                     .candidates = std::to_string(region.priced),
                                     .rule = "fits",
                                     .best = region.best->price.objective});
    for (const InfeasiblePart& part : region.infeasible)
      certificate.regions.push_back(
          {.kind = specs::RegionKind::infeasible,
           .dimensions = dimensions,
           .candidates = std::to_string(part.candidates),
           .rule = std::string(name_of(part.constraint)),
           .reason = fmt::format("{} ({})", memory_equation(part.constraint, part.best.price, pricer),
                                 describe_inside_mesh(part.best.placement))});
  }
  return certificate;
}

}  // namespace planner
