#include "planner/certificate/claimed_region.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "planner/space/module_treatments.h"

namespace planner {
namespace {

using specs::OffloadDevice;
using specs::OffloadTreatment;
using specs::RegularPlacement;

constexpr std::array<std::string_view, 7> mesh_dimensions{"tensor", "context",       "pipeline",  "data",
                                                          "expert", "expert_tensor", "axis_order"};
constexpr std::array<std::string_view, 11> inner_dimensions{
    "micro_batch",         "schedule",       "sequence_parallel", "modules",
    "zero_stage",          "recomputation",  "offload_optimizer", "offload_parameters",
    "offload_activations", "delayed_update", "local_steps"};

std::string text(const OffloadTreatment& treatment) {
  if (treatment.device == OffloadDevice::none) return "none";
  return fmt::format("{}/{}", specs::name_of(treatment.device), treatment.eighths);
}
std::string text(const WrittenOutSchedule& schedule) {
  std::string name(specs::name_of(schedule.kind));
  if (schedule.virtual_stages > 1) name += fmt::format("/{}", schedule.virtual_stages);
  if (schedule.micro_batch_group > 0) name += fmt::format("/{}", schedule.micro_batch_group);
  return name;
}
std::string text(const specs::ZeroTreatment& zero) {
  std::string stage = std::to_string(zero.stage);
  return zero.scope == specs::ShardScope::world ? stage
                                                : stage + "/" + std::string(specs::name_of(zero.scope));
}
std::string text(bool on) { return on ? "true" : "false"; }
std::string text(std::int64_t number) { return std::to_string(number); }
std::string text(specs::Recomputation mode) { return std::string(specs::name_of(mode)); }

template <class Value>
const Value& any_of(const std::vector<Value>& values, std::mt19937_64& random) {
  return values[std::uniform_int_distribution<std::size_t>(0, values.size() - 1)(random)];
}
bool any_of(const std::vector<bool>& values, std::mt19937_64& random) {
  return values[std::uniform_int_distribution<std::size_t>(0, values.size() - 1)(random)];
}

}  // namespace

std::string certificate_value(const RegularPlacement& member, std::string_view dimension) {
  if (dimension == "tensor") return text(member.tensor);
  if (dimension == "context") return text(member.context);
  if (dimension == "pipeline") return text(member.pipeline);
  if (dimension == "data") return text(member.data);
  if (dimension == "expert") return text(member.expert);
  if (dimension == "expert_tensor") return text(member.expert_tensor);
  if (dimension == "axis_order") return specs::to_string(member.order);
  if (dimension == "micro_batch") return text(member.micro_batch);
  if (dimension == "schedule")
    return text(WrittenOutSchedule{member.schedule, member.virtual_stages, member.micro_batch_group});
  if (dimension == "sequence_parallel") return text(member.sequence_parallel);
  if (dimension == "modules") return value_of(member.modules);
  if (dimension == "delayed_update") return text(member.offload.delayed_update);
  if (dimension == "recomputation") return text(member.recomputation);
  if (dimension == "zero_stage") return text(member.zero);
  if (dimension == "offload_optimizer") return text(member.offload.optimizer);
  if (dimension == "offload_parameters") return text(member.offload.parameters);
  if (dimension == "offload_activations") return text(member.offload.activations);
  return text(member.local_steps);
}

ClaimedRegion::ClaimedRegion(const specs::CertificateRegion& region, const WrittenOutSpace& space,
                             std::int64_t global_batch, const WrittenOutChoices* choices)
    : claim_(region), choices_(choices), space_(space), global_batch_(global_batch) {
  for (const specs::RegionDimension& dimension : region.dimensions)
    values_[dimension.dimension] = dimension.values;
  for (std::size_t index = 0; index < space.meshes().size(); ++index) {
    const WrittenOutMesh& mesh = space.meshes()[index];
    const bool inside = std::all_of(values_.begin(), values_.end(), [&](const auto& entry) {
      const bool of_mesh =
          std::find(mesh_dimensions.begin(), mesh_dimensions.end(), entry.first) != mesh_dimensions.end();
      return !of_mesh || admits(entry.first, certificate_value(mesh.corner, entry.first));
    });
    if (!inside) continue;
    const Count count = count_of_mesh(mesh);
    if (count == 0) continue;
    members_ += count;
    meshes_.push_back(index);
    up_to_.push_back(members_);
  }
}

std::vector<std::string> ClaimedRegion::unknown_dimensions() const {
  std::vector<std::string> unknown;
  for (const auto& [name, values] : values_)
    if (std::find(mesh_dimensions.begin(), mesh_dimensions.end(), name) == mesh_dimensions.end() &&
        std::find(inner_dimensions.begin(), inner_dimensions.end(), name) == inner_dimensions.end())
      unknown.push_back(name);
  return unknown;
}

bool ClaimedRegion::admits(std::string_view dimension, const std::string& value) const {
  const auto found = values_.find(dimension);
  return found == values_.end() ||
         std::find(found->second.begin(), found->second.end(), value) != found->second.end();
}

namespace {

/// Those that are admitted under the text that certificates write for them.
template <class Value, class Admits>
std::vector<Value> admitted(std::vector<Value> values, Admits&& admits) {
  std::erase_if(values, [&](const Value& value) { return !admits(text(value)); });
  return values;
}

}  // namespace

std::vector<std::int64_t> ClaimedRegion::micro_batches(const WrittenOutMesh& mesh) const {
  return admitted(mesh.micro_batches, [&](const std::string& value) { return admits("micro_batch", value); });
}

const std::vector<WrittenOutSchedule>& ClaimedRegion::schedules(std::int64_t pipeline,
                                                                std::int64_t accumulation) const {
  // DualPipe asks for two micro-batches a pipeline rank, a group for its own number: beyond them all numbers
  // are alike.
  const std::int64_t alike = std::min(accumulation, std::max(2 * pipeline, space_.largest_group()));
  const auto [found, added] = schedules_of_.try_emplace({pipeline, alike});
  if (added)
    found->second = admitted(space_.schedules(pipeline, alike),
                             [&](const std::string& value) { return admits("schedule", value); });
  return found->second;
}

std::vector<bool> ClaimedRegion::sequence_parallel(const RegularPlacement& mesh) const {
  std::vector<bool> left;
  for (const bool on : space_.sequence_parallel(mesh))
    if (admits("sequence_parallel", text(on))) left.push_back(on);
  return left;
}

const std::vector<specs::ModuleTreatments>& ClaimedRegion::modules(const RegularPlacement& mesh) const {
  if (!values_.contains("modules")) return space_.modules(mesh);
  const auto [found, added] = modules_of_.try_emplace({mesh.tensor, mesh.context});
  if (added)
    for (const specs::ModuleTreatments& treated : space_.modules(mesh))
      if (admits("modules", value_of(treated))) found->second.push_back(treated);
  return found->second;
}

std::vector<specs::Recomputation> ClaimedRegion::recomputations() const {
  return admitted(space_.recomputations(),
                  [&](const std::string& value) { return admits("recomputation", value); });
}

std::vector<specs::ZeroTreatment> ClaimedRegion::zeros(const RegularPlacement& mesh) const {
  return admitted(space_.zeros(mesh), [&](const std::string& value) { return admits("zero_stage", value); });
}

std::vector<OffloadTreatment> ClaimedRegion::offload(OffloadedPart part, const RegularPlacement& mesh,
                                                     const specs::ZeroTreatment& zero) const {
  static constexpr std::array<std::string_view, 3> names{"offload_optimizer", "offload_parameters",
                                                         "offload_activations"};
  return admitted(space_.offload(part, mesh, zero), [&](const std::string& value) {
    return admits(names[static_cast<std::size_t>(part)], value);
  });
}

std::vector<bool> ClaimedRegion::delayed_updates(const OffloadTreatment& optimizer) const {
  std::vector<bool> left;
  for (const bool delayed : space_.delayed_updates(optimizer))
    if (admits("delayed_update", text(delayed))) left.push_back(delayed);
  return left;
}

std::vector<std::int64_t> ClaimedRegion::local_steps(const RegularPlacement& mesh,
                                                     const specs::ZeroTreatment& zero) const {
  return admitted(space_.local_steps(mesh, zero),
                  [&](const std::string& value) { return admits("local_steps", value); });
}

std::vector<ClaimedRegion::Treatment> ClaimedRegion::treatments_of(const RegularPlacement& mesh) const {
  std::vector<Treatment> shards;  // what follows from the ZeRO treatment
  for (const specs::ZeroTreatment& zero : zeros(mesh))
    for (const OffloadTreatment& optimizer : offload(OffloadedPart::optimizer, mesh, zero))
      for (const bool delayed : delayed_updates(optimizer))
        for (const OffloadTreatment& parameters : offload(OffloadedPart::parameters, mesh, zero))
          for (const OffloadTreatment& activations : offload(OffloadedPart::activations, mesh, zero))
            for (const std::int64_t steps : local_steps(mesh, zero))
              shards.push_back({.zero = zero,
                                .offload = {optimizer, parameters, activations, delayed},
                                .local_steps = steps});
  std::vector<Treatment> all;
  for (const bool on : sequence_parallel(mesh))
    for (const specs::ModuleTreatments& treated : modules(mesh))
      for (const specs::Recomputation recomputation : recomputations())
        for (Treatment shard : shards) {
          shard.sequence_parallel = on;
          shard.modules = treated;
          shard.recomputation = recomputation;
          all.push_back(shard);
        }
  return all;
}

/// Of one micro-batch and schedule.
std::size_t ClaimedRegion::treatments(const RegularPlacement& mesh) const {
  std::size_t shards = 0;
  for (const specs::ZeroTreatment& zero : zeros(mesh)) {
    std::size_t optimizers = 0;
    for (const OffloadTreatment& optimizer : offload(OffloadedPart::optimizer, mesh, zero))
      optimizers += delayed_updates(optimizer).size();
    shards += local_steps(mesh, zero).size() * optimizers *
              offload(OffloadedPart::parameters, mesh, zero).size() *
              offload(OffloadedPart::activations, mesh, zero).size();
  }
  return sequence_parallel(mesh).size() * modules(mesh).size() * recomputations().size() * shards;
}

// Inner choices depend on the schedule and the recomputation; each is multiplied by the other treatments.
Count ClaimedRegion::count_of_choices(const WrittenOutMesh& mesh) const {
  RegularPlacement point = mesh.corner;
  const std::vector<specs::Recomputation> recomputed = recomputations();
  Count sum = 0;
  for (const specs::Recomputation recomputation : recomputed) {
    point.recomputation = recomputation;
    for (const std::int64_t micro_batch : micro_batches(mesh)) {
      const std::int64_t accumulation = global_batch_ / point.data / micro_batch;
      point.micro_batch = micro_batch;
      point.accumulation = accumulation;
      for (const WrittenOutSchedule& schedule : schedules(point.pipeline, accumulation)) {
        point.schedule = schedule.kind;
        point.virtual_stages = schedule.virtual_stages;
        point.micro_batch_group = schedule.micro_batch_group;
        sum += choices_->count(point);
      }
    }
  }
  return recomputed.empty() ? Count(0) : Count(sum * treatments(mesh.corner) / recomputed.size());
}

Count ClaimedRegion::count_of_mesh(const WrittenOutMesh& mesh) const {
  if (choices_ != nullptr) return count_of_choices(mesh);
  std::size_t pairs = 0;
  for (const std::int64_t micro_batch : micro_batches(mesh))
    pairs += schedules(mesh.corner.pipeline, global_batch_ / mesh.corner.data / micro_batch).size();
  return pairs == 0 ? Count(0) : Count(pairs) * treatments(mesh.corner);
}

std::optional<RegularPlacement> ClaimedRegion::draw(std::mt19937_64& random) const {
  if (meshes_.empty()) return std::nullopt;
  const Count chosen = (members_ * Count(random())) >> 64;
  const auto found = std::upper_bound(up_to_.begin(), up_to_.end(), chosen);
  const std::size_t index = meshes_[static_cast<std::size_t>(found - up_to_.begin())];
  return complete(space_.meshes()[index], nullptr, random);
}

std::optional<RegularPlacement> ClaimedRegion::draw_near(const RegularPlacement& plan,
                                                         std::mt19937_64& random) const {
  if (meshes_.empty()) return std::nullopt;
  // The mesh of the region that shares most degrees with the plan's, or one that differs a little more.
  std::vector<std::pair<int, std::size_t>> by_distance;
  for (const std::size_t index : meshes_) {
    const RegularPlacement& corner = space_.meshes()[index].corner;
    const int distance = (corner.tensor != plan.tensor) + (corner.context != plan.context) +
                         (corner.pipeline != plan.pipeline) + (corner.data != plan.data) +
                         (corner.expert != plan.expert) + (corner.expert_tensor != plan.expert_tensor) +
                         (corner.order != plan.order);
    by_distance.emplace_back(distance, index);
  }
  const std::size_t near = std::min<std::size_t>(by_distance.size(), 4);
  std::partial_sort(by_distance.begin(), by_distance.begin() + static_cast<std::ptrdiff_t>(near),
                    by_distance.end());
  const std::size_t place = std::uniform_int_distribution<std::size_t>(0, near - 1)(random);
  return complete(space_.meshes()[by_distance[place].second], &plan, random);
}

namespace {

/// Keeps the value of `like` where it is among the choices, but for one time in four.
template <class Value, class Choices>
bool choose(const Choices& choices, const Value* like, std::mt19937_64& random, Value& value) {
  if (choices.empty()) return false;
  const bool keep = like != nullptr && std::find(choices.begin(), choices.end(), *like) != choices.end() &&
                    std::uniform_int_distribution<int>(0, 3)(random) != 0;
  value = keep ? *like : any_of(choices, random);
  return true;
}

}  // namespace

std::optional<RegularPlacement> ClaimedRegion::complete(const WrittenOutMesh& mesh,
                                                        const RegularPlacement* like,
                                                        std::mt19937_64& random) const {
  RegularPlacement member = mesh.corner;
  std::vector<std::int64_t> sizes = micro_batches(mesh);
  std::erase_if(sizes, [&](std::int64_t size) {
    return schedules(member.pipeline, global_batch_ / member.data / size).empty();
  });
  if (!choose(sizes, like ? &like->micro_batch : nullptr, random, member.micro_batch)) return std::nullopt;
  member.accumulation = global_batch_ / member.data / member.micro_batch;
  WrittenOutSchedule schedule, liked;
  if (like) liked = {like->schedule, like->virtual_stages, like->micro_batch_group};
  if (!choose(schedules(member.pipeline, member.accumulation), like ? &liked : nullptr, random, schedule))
    return std::nullopt;
  member.schedule = schedule.kind;
  member.virtual_stages = schedule.virtual_stages;
  member.micro_batch_group = schedule.micro_batch_group;
  if (!choose(sequence_parallel(member), like ? &like->sequence_parallel : nullptr, random,
              member.sequence_parallel))
    return std::nullopt;
  if (!choose(modules(member), like ? &like->modules : nullptr, random, member.modules)) return std::nullopt;
  if (!choose(recomputations(), like ? &like->recomputation : nullptr, random, member.recomputation) ||
      !choose(zeros(member), like ? &like->zero : nullptr, random, member.zero))
    return std::nullopt;
  std::vector<OffloadTreatment> optimizers = offload(OffloadedPart::optimizer, member, member.zero);
  std::erase_if(optimizers, [&](const auto& optimizer) { return delayed_updates(optimizer).empty(); });
  if (!choose(optimizers, like ? &like->offload.optimizer : nullptr, random, member.offload.optimizer) ||
      !choose(delayed_updates(member.offload.optimizer), like ? &like->offload.delayed_update : nullptr,
              random, member.offload.delayed_update) ||
      !choose(offload(OffloadedPart::parameters, member, member.zero),
              like ? &like->offload.parameters : nullptr, random, member.offload.parameters) ||
      !choose(offload(OffloadedPart::activations, member, member.zero),
              like ? &like->offload.activations : nullptr, random, member.offload.activations) ||
      !choose(local_steps(member, member.zero), like ? &like->local_steps : nullptr, random,
              member.local_steps))
    return std::nullopt;
  if (choices_ != nullptr && choices_->count(member) == 0) return std::nullopt;
  return member;
}

}  // namespace planner
