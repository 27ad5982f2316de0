#include "planner/certificate/certificate.h"

#include <fmt/format.h>

#include "planner/space/module_treatments.h"
#include "planner/wording/quantity.h"

namespace planner {
namespace {

using specs::name_of;

void describe_offload(std::string& text, std::string_view name, const specs::OffloadTreatment& offload) {
  if (offload.device != specs::OffloadDevice::none)
    text += fmt::format(" {}={}:{}/8", name, name_of(offload.device), offload.eighths);
}

/// "device memory: needs at least 181 GiB of 79.1 GiB a device"
std::string least_need(const Region& region, const Pricer& pricer) {
  const bool device = region.rule == name_of(Constraint::device_memory);
  const std::int64_t usable = device ? pricer.usable_device_bytes() : pricer.usable_host_bytes();
  return fmt::format("{}: needs at least {} of {} a {}", region.rule,
                     format_bytes(static_cast<double>(region.needed_bytes)),
                     format_bytes(static_cast<double>(usable)), device ? "device" : "node");
}

}  // namespace

std::string describe_inside_mesh(const specs::RegularPlacement& placement) {
  std::string text = fmt::format("micro_batch={}", placement.micro_batch);
  if (placement.pipeline > 1) text += fmt::format(" schedule={}", name_of(placement.schedule));
  if (placement.virtual_stages > 1) text += fmt::format(" virtual_stages={}", placement.virtual_stages);
  if (placement.micro_batch_group > 0)
    text += fmt::format(" micro_batch_group={}", placement.micro_batch_group);
  text += fmt::format(" recomputation={}", name_of(placement.recomputation));
  if (placement.tensor > 1) text += fmt::format(" sequence_parallel={}", placement.sequence_parallel);
  if (placement.modules != specs::ModuleTreatments{})
    text += fmt::format(" modules={}", value_of(placement.modules));
  if (placement.order != specs::default_axis_order)
    text += fmt::format(" axis_order={}", specs::to_string(placement.order));
  text += fmt::format(" zero_stage={}", placement.zero.stage);
  if (placement.zero.scope != specs::ShardScope::world)
    text += fmt::format(" shard_scope={}", name_of(placement.zero.scope));
  describe_offload(text, "offload_optimizer", placement.offload.optimizer);
  describe_offload(text, "offload_parameters", placement.offload.parameters);
  describe_offload(text, "offload_activations", placement.offload.activations);
  if (placement.offload.delayed_update) text += " delayed_update=true";
  if (placement.local_steps > 1) text += fmt::format(" local_steps={}", placement.local_steps);
  return text;
}

std::string memory_equation(Constraint constraint, const Price& price, const Pricer& pricer) {
  return constraint == Constraint::device_memory
             ? memory_equation(constraint, price.peak_device_bytes, pricer.usable_device_bytes())
             : memory_equation(constraint, price.peak_host_bytes_per_node, pricer.usable_host_bytes());
}

std::string memory_equation(Constraint constraint, std::int64_t needed_bytes, std::int64_t usable_bytes) {
  return fmt::format("{}: needs {} of {} a {}", name_of(constraint),
                     format_bytes(static_cast<double>(needed_bytes)),
                     format_bytes(static_cast<double>(usable_bytes)),
                     constraint == Constraint::device_memory ? "device" : "node");
}

specs::Certificate certificate_of(const SearchResult& result, const Pricer& pricer) {
  specs::Certificate certificate;
  certificate.space_candidates = result.candidates.str();
  certificate.priced_candidates = result.priced.str();
  certificate.infeasible_candidates = result.infeasible.str();
  certificate.bounded_candidates = result.bounded.str();
  certificate.gap = result.gap();
  certificate.complete = result.complete;
  certificate.method = result.method;
  certificate.regions.reserve(result.regions.size());
  for (const Region& region : result.regions) {
    specs::CertificateRegion entry{.kind = region.kind,
                                   .dimensions = region.dimensions,
                                   .candidates = region.candidates.str(),
                                   .rule = std::string(region.rule)};
    if (region.kind == specs::RegionKind::infeasible) entry.reason = least_need(region, pricer);
    if (region.kind == specs::RegionKind::bounded) entry.bound = region.objective;
    if (region.kind == specs::RegionKind::priced || region.kind == specs::RegionKind::optimized)
      entry.best = region.objective;
    certificate.regions.push_back(std::move(entry));
  }
  return certificate;
}

}  // namespace planner
