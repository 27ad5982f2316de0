#include "planner/search/branch_and_bound.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "planner/search/incumbents.h"
#include "planner/search/lower_bounds.h"
#include "planner/search/member_counts.h"
#include "planner/search/nearest_infeasible.h"
#include "planner/search/region_merge.h"
#include "planner/search/treatment_search.h"
#include "planner/space/module_treatments.h"

namespace planner {
namespace {

using specs::RegionKind;

std::string value_of(const ScheduleChoice& choice) {
  std::string name(specs::name_of(choice.kind));
  if (choice.virtual_stages > 1) name += fmt::format("/{}", choice.virtual_stages);
  if (choice.micro_batch_group > 0) name += fmt::format("/{}", choice.micro_batch_group);
  return name;
}

/// One mesh with one micro-batch.
struct Node {
  double bound = 0;
  std::uint32_t mesh = 0;
  std::uint32_t batch = 0;
};

class Search {
 public:
  Search(const specs::Experiment& experiment, const Space& space, const cost_models::Estimator& estimator,
         const Pricer& pricer, const std::atomic<bool>* stop)
      : experiment_(experiment),
        space_(space),
        estimator_(estimator),
        pricer_(pricer),
        stop_(stop),
        counts_(space, pricer),
        incumbents_(number_meshes()),
        treatments_(space, pricer, counts_, incumbents_) {}

  SearchResult run() {
    bound_nodes();
    std::stable_sort(nodes_.begin(), nodes_.end(),
                     [](const Node& a, const Node& b) { return a.bound < b.bound; });
    for (const Node& node : nodes_) probe(node);
    treatments_.record(false);
    for (const Node& node : nodes_) settle(node);
    // What is proven is the plan. None of the candidates that this looks at is priced again.
    treatments_.record(true);
    incumbents_.ask_for_the_plan_alone();
    for (const Node& node : nodes_) settle(node);
    result_.method = branch_and_bound_method;
    result_.regions = mesh_regions();
    std::erase_if(result_.regions, [](const Region& region) { return region.candidates == 0; });
    choose_best(best_of_meshes(), result_);
    if (result_.best) result_.near_miss = treatments_.near_misses().better_than(result_.best->price);
    sum_up();
    return std::move(result_);
  }

 private:
  /// What was found by a first look at its cuts is looked at again where it leads.
  std::vector<PricedCandidate> best_of_meshes() const {
    std::vector<PricedCandidate> candidates = incumbents_.best_of_meshes();
    std::stable_sort(
        candidates.begin(), candidates.end(),
        [](const PricedCandidate& a, const PricedCandidate& b) { return is_better(a.price, b.price); });
    if (candidates.size() > most_runners_up + 1) candidates.resize(most_runners_up + 1);
    for (PricedCandidate& candidate : candidates) {
      if (stopped() || pricer_.members(candidate.placement) == 1) continue;
      const auto found = pricer_.solve(candidate.placement, candidate.price.objective, Effort::some).price;
      if (found && !excess_of(*found, pricer_).constraint && is_better(*found, candidate.price))
        candidate.price = *found;
    }
    return candidates;
  }

  bool stopped() const { return stop_ != nullptr && stop_->load(std::memory_order_relaxed); }

  /// Orders of one mesh compete for one place among the plans.
  std::size_t number_meshes() {
    std::map<MeshDegrees, std::size_t> numbers;
    for (const MeshSpace& mesh : space_.meshes())
      plan_of_mesh_.push_back(numbers.try_emplace(mesh.mesh, numbers.size()).first->second);
    return numbers.size();
  }

  void bound_nodes() {
    const std::vector<MeshSpace>& meshes = space_.meshes();
    regions_.resize(meshes.size());
    bounds_.reserve(meshes.size());
    for (std::size_t index = 0; index < meshes.size(); ++index) {
      const MeshSpace& mesh = meshes[index];
      bounds_.emplace_back(experiment_, space_, estimator_, mesh);
      const std::int64_t needed = bounds_.back().device_bytes();
      if (needed > pricer_.usable_device_bytes()) {
        regions_[index].push_back({.kind = RegionKind::infeasible,
                                   .rule = specs::name_of(Constraint::device_memory),
                                   .candidates = counts_.of_mesh(mesh),
                                   .needed_bytes = needed});
        continue;
      }
      batch_regions_[index].resize(space_.batches(mesh).size());
      if (stopped()) result_.complete = false;
      for (std::size_t batch = 0; batch < space_.batches(mesh).size(); ++batch)
        nodes_.push_back(node_of(index, batch));
    }
  }

  Node node_of(std::size_t mesh, std::size_t batch) const {
    Node node{0, static_cast<std::uint32_t>(mesh), static_cast<std::uint32_t>(batch)};
    if (!result_.complete) return node;  // nothing is known
    const MeshSpace& of_mesh = space_.meshes()[mesh];
    const BatchChoice& choice = space_.batches(of_mesh)[batch];
    node.bound = std::numeric_limits<double>::infinity();
    for (const bool on : of_mesh.sequence_parallel) {
      const MeshBounds::Work work = bounds_[mesh].quickest_work(choice, on);
      for (const ScheduleChoice& schedule : space_.schedules(choice))
        node.bound = std::min(node.bound, bound_of(mesh, choice, schedule, work));
    }
    return node;
  }

  double bound_of(std::size_t mesh, const BatchChoice& batch, const ScheduleChoice& schedule,
                  const MeshBounds::Work& work) const {
    const double seconds = bounds_[mesh].step_seconds(batch, schedule, work);
    return pricer_.objective(seconds, space_.meshes()[mesh].mesh.world_size()) * (1 - bound_margin);
  }

  Region bounded(double bound, Count candidates) const {
    return {.kind = RegionKind::bounded,
            .rule = balanced_pipeline_rule,
            .candidates = std::move(candidates),
            .objective = bound};
  }

  void probe(const Node& node) {
    if (stopped() || !result_.complete) return;
    const std::size_t plan = plan_of_mesh_[node.mesh];
    if (node.bound > incumbents_.threshold(plan)) return;
    const MeshSpace& mesh = space_.meshes()[node.mesh];
    const BatchChoice& batch = space_.batches(mesh)[node.batch];
    specs::RegularPlacement point = point_of(mesh, batch);
    point.modules = space_.modules(mesh).front();
    for (const bool on : mesh.sequence_parallel) {
      const MeshBounds::Work work = bounds_[node.mesh].work(batch, on, point.modules);
      point.sequence_parallel = on;
      for (const ScheduleChoice& schedule : space_.schedules(batch)) {
        if (bound_of(node.mesh, batch, schedule, work) > incumbents_.threshold(plan)) continue;
        point.schedule = schedule.kind;
        point.virtual_stages = schedule.virtual_stages;
        point.micro_batch_group = schedule.micro_batch_group;
        treatments_.probe(mesh, plan, point);
      }
    }
  }

  static specs::RegularPlacement point_of(const MeshSpace& mesh, const BatchChoice& batch) {
    specs::RegularPlacement point = mesh.corner();
    point.micro_batch = batch.micro_batch;
    point.accumulation = batch.accumulation;
    return point;
  }

  void settle(const Node& node) {
    const MeshSpace& mesh = space_.meshes()[node.mesh];
    const BatchChoice& batch = space_.batches(mesh)[node.batch];
    std::vector<Region>& regions = batch_regions_[node.mesh][node.batch];
    regions.clear();
    if (stopped()) result_.complete = false;
    if (!result_.complete || node.bound > incumbents_.threshold(plan_of_mesh_[node.mesh])) {
      if (treatments_.records()) regions.push_back(bounded(node.bound, counts_.of_batch(mesh, batch)));
      return;
    }
    std::vector<ValueRegions> parts;
    for (const bool on : mesh.sequence_parallel)
      parts.push_back({on ? "true" : "false", settle_modules(node.mesh, batch, on)});
    regions = merge_regions("sequence_parallel", std::move(parts));
  }

  std::vector<Region> settle_modules(std::size_t index, const BatchChoice& batch, bool sequence_parallel) {
    specs::RegularPlacement point = point_of(space_.meshes()[index], batch);
    point.sequence_parallel = sequence_parallel;
    std::vector<ValueRegions> parts;
    for (const specs::ModuleTreatments& modules : space_.modules(space_.meshes()[index])) {
      point.modules = modules;
      parts.push_back({planner::value_of(modules), settle_schedules(index, batch, point)});
    }
    return merge_regions("modules", std::move(parts));
  }

  /// `point` has everything but the schedule and what TreatmentSearch settles.
  std::vector<Region> settle_schedules(std::size_t index, const BatchChoice& batch,
                                       specs::RegularPlacement point) {
    const MeshSpace& mesh = space_.meshes()[index];
    const MeshBounds::Work work = bounds_[index].work(batch, point.sequence_parallel, point.modules);
    const std::vector<ScheduleChoice>& schedules = space_.schedules(batch);
    std::vector<std::pair<double, std::size_t>> order;
    for (std::size_t number = 0; number < schedules.size(); ++number)
      order.emplace_back(bound_of(index, batch, schedules[number], work), number);
    std::sort(order.begin(), order.end());
    std::vector<ValueRegions> parts(schedules.size());
    for (const auto& [bound, number] : order) {
      const ScheduleChoice& schedule = schedules[number];
      point.schedule = schedule.kind;
      point.virtual_stages = schedule.virtual_stages;
      point.micro_batch_group = schedule.micro_batch_group;
      parts[number].value = value_of(schedule);
      if (bound > incumbents_.threshold(plan_of_mesh_[index]))
        parts[number].regions.push_back(
            bounded(bound, counts_.of_schedule(mesh, batch, schedule) / space_.kinds(mesh)));
      else
        parts[number].regions = treatments_.settle(mesh, plan_of_mesh_[index], point);
    }
    return merge_regions("schedule", std::move(parts));
  }

  /// The regions of all meshes, put together degree by degree.
  std::vector<Region> mesh_regions() {
    std::vector<std::size_t> order(space_.meshes().size());
    for (std::size_t index = 0; index < order.size(); ++index) order[index] = index;
    const std::vector<MeshSpace>& meshes = space_.meshes();
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return meshes[a].mesh < meshes[b].mesh; });
    return merged(order, 0);
  }

  std::vector<Region> merged(const std::vector<std::size_t>& meshes, std::size_t level) {
    struct Level {
      std::string_view name;
      std::int64_t MeshDegrees::*degree;
    };
    static constexpr std::array<Level, 6> levels{{{"tensor", &MeshDegrees::tensor},
                                                  {"context", &MeshDegrees::context},
                                                  {"pipeline", &MeshDegrees::pipeline},
                                                  {"data", &MeshDegrees::data},
                                                  {"expert", &MeshDegrees::expert},
                                                  {"expert_tensor", &MeshDegrees::expert_tensor}}};
    std::vector<ValueRegions> parts;
    if (level == levels.size()) {
      for (const std::size_t index : meshes)
        parts.push_back({specs::to_string(space_.meshes()[index].order), of_mesh(index)});
      return merge_regions("axis_order", std::move(parts));
    }
    const auto degree = [&](std::size_t index) { return space_.meshes()[index].mesh.*levels[level].degree; };
    for (std::size_t begin = 0; begin < meshes.size();) {
      std::vector<std::size_t> alike;
      std::size_t end = begin;
      for (; end < meshes.size() && degree(meshes[end]) == degree(meshes[begin]); ++end)
        alike.push_back(meshes[end]);
      parts.push_back({std::to_string(degree(meshes[begin])), merged(alike, level + 1)});
      begin = end;
    }
    return merge_regions(levels[level].name, std::move(parts));
  }

  std::vector<Region> of_mesh(std::size_t index) {
    const auto found = batch_regions_.find(index);
    if (found == batch_regions_.end()) return std::move(regions_[index]);
    std::vector<ValueRegions> parts;
    const std::vector<BatchChoice>& batches = space_.batches(space_.meshes()[index]);
    for (std::size_t batch = 0; batch < batches.size(); ++batch)
      parts.push_back({std::to_string(batches[batch].micro_batch), std::move(found->second[batch])});
    return merge_regions("micro_batch", std::move(parts));
  }

  void sum_up() {
    result_.lower_bound =
        result_.best ? result_.best->price.objective : std::numeric_limits<double>::infinity();
    for (const Region& region : result_.regions) {
      result_.candidates += region.candidates;
      Count& of_kind = region.kind == RegionKind::infeasible ? result_.infeasible
                       : region.kind == RegionKind::bounded  ? result_.bounded
                                                             : result_.priced;
      of_kind += region.candidates;
      if (region.kind == RegionKind::bounded || region.kind == RegionKind::optimized)
        result_.lower_bound = std::min(result_.lower_bound, region.objective);
    }
  }

  const specs::Experiment& experiment_;
  const Space& space_;
  const cost_models::Estimator& estimator_;
  const Pricer& pricer_;
  const std::atomic<bool>* stop_;
  std::vector<std::size_t> plan_of_mesh_;  ///< number of the mesh's degrees
  MemberCounts counts_;
  Incumbents incumbents_;
  TreatmentSearch treatments_;
  std::vector<MeshBounds> bounds_;
  std::vector<Node> nodes_;
  std::vector<std::vector<Region>> regions_;                               ///< of meshes settled whole
  std::map<std::size_t, std::vector<std::vector<Region>>> batch_regions_;  ///< of the others, by micro-batch
  SearchResult result_;
};

}  // namespace

SearchResult branch_and_bound(const specs::Experiment& experiment, const Space& space,
                              const cost_models::Estimator& estimator, const Pricer& pricer,
                              const std::atomic<bool>* stop, WhereNothingFits where_nothing_fits) {
  SearchResult result = Search(experiment, space, estimator, pricer, stop).run();
  if (where_nothing_fits == WhereNothingFits::names_the_nearest && !result.best && result.complete)
    result.nearest_infeasible = nearest_infeasible(experiment, space, estimator, pricer);
  return result;
}

}  // namespace planner
