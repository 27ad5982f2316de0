#include "planner/search/nearest_infeasible.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "planner/search/lower_bounds.h"

namespace planner {
namespace {

class NearestSearch {
 public:
  NearestSearch(const Space& space, const Pricer& pricer) : space_(space), pricer_(pricer) {}

  void look_at(const MeshSpace& mesh) {
    specs::RegularPlacement point = mesh.corner();
    for (const BatchChoice& batch : space_.batches(mesh))
      for (const ScheduleChoice& schedule : space_.schedules(batch)) {
        point.micro_batch = batch.micro_batch;
        point.accumulation = batch.accumulation;
        point.schedule = schedule.kind;
        point.virtual_stages = schedule.virtual_stages;
        point.micro_batch_group = schedule.micro_batch_group;
        look_at_kinds(mesh, point);
      }
  }

  /// By cuts of their own where those are free: what the even ones lack leaves few that are worth the search.
  void look_at_cuts() {
    constexpr std::int64_t any_bytes = std::int64_t{1} << 50;
    for (const specs::RegularPlacement& point : looked_at_)
      if (const auto nearer = pricer_.memory_of_nearer(point, nearest_ ? excess_bytes() : any_bytes))
        nearest_ = {point, *nearer};
  }

  const std::optional<PricedCandidate>& nearest() const { return nearest_; }
  std::int64_t excess_bytes() const { return excess_of(nearest_->price, pricer_).bytes; }

 private:
  void look_at_kinds(const MeshSpace& mesh, specs::RegularPlacement point) {
    const std::vector<specs::ModuleTreatments>& all = space_.modules(mesh);
    for (const bool sequence_parallel : mesh.sequence_parallel)
      for (const specs::ModuleTreatments& modules : all) {
        if (needs_more(modules, all)) continue;
        point.sequence_parallel = sequence_parallel;
        point.modules = modules;
        look_at_treatments(mesh, point);
      }
  }

  /// Smaller degrees only leave more on a rank: those of the mesh need least, where all modules may have
  /// them.
  static bool needs_more(const specs::ModuleTreatments& modules,
                         const std::vector<specs::ModuleTreatments>& all) {
    const specs::ModuleTreatments own;
    specs::ModuleTreatments degrees = modules;
    degrees.output_mode = own.output_mode;
    if (modules.output_mode == specs::OutputLayerMode::token_parallel) degrees.output_tensor = 0;
    return all.front() == own && degrees != own;
  }

  void look_at_treatments(const MeshSpace& mesh, specs::RegularPlacement point) {
    for (const specs::Recomputation recomputation : space_.recomputations())
      for (const specs::ZeroTreatment& zero : space_.zeros(mesh)) {
        point.recomputation = recomputation;
        point.zero = zero;
        if (pricer_.members(point) != 0) look_at_offload(point);
      }
  }

  void look_at_offload(specs::RegularPlacement& point) {
    for (const bool delayed : {false, true})
      for (const auto& optimizer : space_.optimizer_offload(delayed))
        for (const auto& parameters : space_.parameter_offload(point.zero)) {
          point.offload.optimizer = optimizer;
          point.offload.parameters = parameters;
          point.offload.delayed_update = delayed;
          look_at_activations(point);
        }
  }

  // More eighths on a device leave less on the GPU and more with the host: what lacks least is on either side
  // of where the GPU's memory begins to suffice.
  void look_at_activations(specs::RegularPlacement& point) {
    const std::vector<specs::OffloadTreatment>& choices = space_.activation_offload(mesh_of(point));
    for (std::size_t begin = 0; begin < choices.size();) {
      std::size_t end = begin + 1;
      while (end < choices.size() && choices[end].device == choices[begin].device) ++end;
      std::size_t low = begin, high = end;  // the first whose device memory suffices
      while (low < high) {
        const std::size_t middle = low + (high - low) / 2;
        point.offload.activations = choices[middle];
        if (pricer_.fits_device(look_at_point(point)))
          high = middle;
        else
          low = middle + 1;
      }
      begin = end;
    }
  }

  Price look_at_point(const specs::RegularPlacement& point) {
    looked_at_.push_back(point);
    const Price price = pricer_.memory_of_nearest(point);
    const Excess excess = excess_of(price, pricer_);
    if (excess.constraint && (!nearest_ || excess.bytes < excess_bytes())) nearest_ = {point, price};
    return pricer_.least_memory(point);
  }

  const Space& space_;
  const Pricer& pricer_;
  std::optional<PricedCandidate> nearest_;
  std::vector<specs::RegularPlacement> looked_at_;
};

}  // namespace

std::optional<PricedCandidate> nearest_infeasible(const specs::Experiment& experiment, const Space& space,
                                                  const cost_models::Estimator& estimator,
                                                  const Pricer& pricer) {
  std::vector<std::pair<std::int64_t, const MeshSpace*>> meshes;
  for (const MeshSpace& mesh : space.meshes())
    meshes.emplace_back(MeshBounds(experiment, space, estimator, mesh).device_bytes(), &mesh);
  std::stable_sort(meshes.begin(), meshes.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  NearestSearch search(space, pricer);
  for (const auto& [needed, mesh] : meshes) {
    if (search.nearest() && needed - pricer.usable_device_bytes() >= search.excess_bytes()) break;
    search.look_at(*mesh);
  }
  search.look_at_cuts();
  std::optional<PricedCandidate> nearest = search.nearest();
  if (!nearest) return nearest;
  nearest->price = pricer.price_of_choice(nearest->placement, pricer.placement(nearest->placement));
  if (!excess_of(nearest->price, pricer).constraint) nearest->price = pricer.price(nearest->placement);
  return nearest;
}

}  // namespace planner
