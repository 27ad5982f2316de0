#include "planner/search/treatment_search.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "planner/search/region_merge.h"
#include "planner/space/placement_hash.h"

namespace planner {
namespace {

using specs::OffloadTreatment;
using specs::RegionKind;

constexpr std::array<std::string_view, 3> part_names{"offload_optimizer", "offload_parameters",
                                                     "offload_activations"};

OffloadTreatment& part_of(specs::StageOffload& offload, std::size_t part) {
  return part == 0 ? offload.optimizer : part == 1 ? offload.parameters : offload.activations;
}

std::string value_of(const OffloadTreatment& treatment) {
  const std::string name(name_of(treatment.device));
  return treatment.device == specs::OffloadDevice::none ? name
                                                        : fmt::format("{}/{}", name, treatment.eighths);
}

std::string value_of(const specs::ZeroTreatment& zero) {
  return zero.scope == specs::ShardScope::world ? std::to_string(zero.stage)
                                                : fmt::format("{}/{}", zero.stage, name_of(zero.scope));
}

}  // namespace

std::vector<Region> TreatmentSearch::settle(const MeshSpace& mesh, std::size_t mesh_index,
                                            specs::RegularPlacement point) {
  mesh_index_ = mesh_index;
  std::map<std::size_t, std::vector<Dominator>> dominators_of_kind;  ///< by ZeRO treatment and local steps
  std::vector<ValueRegions> by_recomputation;
  for (const specs::Recomputation recomputation : space_.recomputations()) {
    point.recomputation = recomputation;
    members_of_point_ = counts_.of_point(point);
    if (members_of_point_ == 0) {
      by_recomputation.push_back({std::string(name_of(recomputation)), {}});
      continue;
    }
    std::vector<ValueRegions> by_zero;
    std::size_t kind = 0;
    for (const specs::ZeroTreatment& zero : space_.zeros(mesh)) {
      point.zero = zero;
      std::vector<ValueRegions> by_delay;
      for (const bool delayed : {false, true}) {
        point.offload.delayed_update = delayed;
        choices_ = {&space_.optimizer_offload(delayed), &space_.parameter_offload(zero),
                    &space_.activation_offload(mesh.mesh)};
        if (choices_[0]->empty()) continue;
        std::vector<ValueRegions> by_steps;
        for (const std::int64_t steps : space_.local_steps(mesh, zero)) {
          point.local_steps = steps;
          dominators_ = &dominators_of_kind[kind++];
          by_steps.push_back({std::to_string(steps), settle_zero(point)});
        }
        by_delay.push_back({delayed ? "true" : "false", merge_regions("local_steps", std::move(by_steps))});
      }
      by_zero.push_back({value_of(zero), merge_regions("delayed_update", std::move(by_delay))});
    }
    by_recomputation.push_back(
        {std::string(name_of(recomputation)), merge_regions("zero_stage", std::move(by_zero))});
  }
  return merge_regions("recomputation", std::move(by_recomputation));
}

void TreatmentSearch::probe(const MeshSpace& mesh, std::size_t mesh_index, specs::RegularPlacement point) {
  const OffloadChoices& choices = space_.offload();
  const std::vector<OffloadTreatment>& activations = space_.activation_offload(mesh.mesh);
  for (const specs::Recomputation recomputation : space_.recomputations())
    for (const specs::ZeroTreatment& zero : space_.zeros(mesh)) {
      const std::vector<OffloadTreatment>& parameters = space_.parameter_offload(zero);
      if (choices.optimizer.empty() || parameters.empty() || activations.empty()) continue;
      point.recomputation = recomputation;
      point.zero = zero;
      point.offload = {choices.optimizer.front(), parameters.front(), activations.front(), false};
      if (bound_of(point) > incumbents_.threshold(mesh_index)) continue;
      const std::optional<Price> price = pricer_.easy_price(point, incumbents_.threshold(mesh_index));
      if (price && !excess_of(*price, pricer_).constraint) incumbents_.offer(mesh_index, {point, *price});
    }
}

// Where cuts are free a first look is at the cut with the least bound alone; what is written down as proof is
// looked at whole.
const Solved& TreatmentSearch::solved(const specs::RegularPlacement& point) {
  const double enough = this->enough();
  const Effort effort = records_ ? Effort::whole : Effort::bound_alone;
  std::vector<Known>& alike = solved_[hash_of(point)];
  auto found =
      std::find_if(alike.begin(), alike.end(), [&](const Known& known) { return known.point == point; });
  if (found == alike.end()) {
    alike.push_back({point, pricer_.solve(point, enough, effort), effort});
    return alike.back().solved;
  }
  const Solved& known = found->solved;
  const bool given_up = !known.price && known.least_objective < enough;
  const bool open = known.price && known.least_objective < known.price->objective &&
                    known.least_objective <= enough && !excess_of(*known.price, pricer_).constraint;
  if (given_up || (open && found->effort < effort))
    *found = {point, pricer_.solve(point, enough, effort), effort};
  return found->solved;
}

namespace {

/// With nothing on a device, or no more of it on the same one.
bool moves_no_more(const OffloadTreatment& less, const OffloadTreatment& more) {
  return less.device == specs::OffloadDevice::none ||
         (less.device == more.device && less.eighths <= more.eighths);
}

}  // namespace

const TreatmentSearch::Dominator* TreatmentSearch::dominator_of(const specs::RegularPlacement& point) const {
  const bool may_save =
      point.offload.delayed_update || !pricer_.slower_in_larger_shares(point.offload.optimizer.device);
  const auto found = std::find_if(dominators_->begin(), dominators_->end(), [&](const Dominator& dominator) {
    return (dominator.recomputation == specs::Recomputation::none ||
            dominator.recomputation == point.recomputation) &&
           (may_save ? dominator.offload.optimizer == point.offload.optimizer
                     : moves_no_more(dominator.offload.optimizer, point.offload.optimizer)) &&
           moves_no_more(dominator.offload.parameters, point.offload.parameters) &&
           moves_no_more(dominator.offload.activations, point.offload.activations) &&
           (dominator.recomputation != point.recomputation || dominator.offload != point.offload);
  });
  return found == dominators_->end() ? nullptr : &*found;
}

// Shares on one device grow with the index; what is to be compared must lie on one. A larger share of a
// delayed update may take less, and so may any of a host that updates quicker than the devices.
std::vector<Region> TreatmentSearch::settle_zero(specs::RegularPlacement& point) {
  std::array<std::vector<Range>, 3> runs;
  for (std::size_t part = 0; part < 3; ++part) {
    const std::vector<OffloadTreatment>& choices = *choices_[part];
    for (std::size_t index = 0; index < choices.size(); ++index) {
      const bool may_save = part == 0 && (point.offload.delayed_update ||
                                          !pricer_.slower_in_larger_shares(choices[index].device));
      const bool grows = index > 0 && !may_save &&
                         (choices[index].device == choices[index - 1].device ||
                          choices[index - 1].device == specs::OffloadDevice::none);
      if (grows)
        runs[part].back().end = index + 1;
      else
        runs[part].push_back({index, index + 1});
    }
  }
  std::vector<Region> regions;
  for (const Range& optimizer : runs[0])
    for (const Range& parameters : runs[1])
      for (const Range& activations : runs[2])
        settle_box({optimizer, parameters, activations}, point, regions);
  return regions;
}

void TreatmentSearch::take(const Box& box, bool largest, specs::RegularPlacement& point) const {
  for (std::size_t part = 0; part < 3; ++part)
    part_of(point.offload, part) = (*choices_[part])[largest ? box[part].end - 1 : box[part].begin];
}

void TreatmentSearch::add(const Box& box, Region region, std::vector<Region>& regions) const {
  if (!records_) return;
  region.candidates = members_of_point_;
  for (std::size_t part = 0; part < 3; ++part) {
    region.candidates *= box[part].size();
    if (box[part].size() == choices_[part]->size()) continue;
    specs::RegionDimension dimension{std::string(part_names[part]), {}};
    for (std::size_t index = box[part].begin; index < box[part].end; ++index)
      dimension.values.push_back(value_of((*choices_[part])[index]));
    region.dimensions.push_back(std::move(dimension));
  }
  regions.push_back(std::move(region));
}

void TreatmentSearch::add_infeasible(const Box& box, Constraint constraint, std::int64_t needed_bytes,
                                     std::vector<Region>& regions) const {
  add(box, {.kind = RegionKind::infeasible, .rule = specs::name_of(constraint), .needed_bytes = needed_bytes},
      regions);
}

// Of use only where it would be better than the plan, which is known once the regions are written down. The
// best of a box is its member with the smallest shares.
void TreatmentSearch::note_infeasible(const specs::RegularPlacement& point, double bound) {
  if (!records_ || std::isinf(bound) || near_misses_.dominates(pricer_.memory_of_nearest(point), bound))
    return;
  near_misses_.add({point, pricer_.price(point)});
}

// Before the proof, of points with several inner choices, what is hardly better need not be found.
double TreatmentSearch::enough() const {
  constexpr double hardly = 0.005;
  const double threshold = incumbents_.threshold(mesh_index_);
  return records_ || members_of_point_ == 1 ? threshold : threshold * (1 - hardly);
}

double TreatmentSearch::bound_of(const specs::RegularPlacement& point) const {
  return pricer_.objective(pricer_.step_bound(point), point.world_size()) * (1 - bound_margin);
}

void TreatmentSearch::settle_box(const Box& box, specs::RegularPlacement& point,
                                 std::vector<Region>& regions) {
  take(box, false, point);
  const double bound = bound_of(point);
  if (bound > enough())
    return add(box, {.kind = RegionKind::bounded, .rule = smallest_shares_rule, .objective = bound}, regions);
  if (const Dominator* dominator = dominator_of(point))
    return add(box, {.kind = RegionKind::bounded, .rule = adds_to_rule, .objective = dominator->objective},
               regions);
  if (members_of_point_ > 1 && pricer_.surely_exceeds(point, enough()))
    return add(box, {.kind = RegionKind::bounded, .rule = smallest_shares_rule, .objective = enough()},
               regions);
  const Price smallest = pricer_.least_memory(point);
  const specs::RegularPlacement smallest_point = point;
  take(box, true, point);
  const bool single = point.offload == smallest_point.offload;
  const Price largest = single ? smallest : pricer_.least_memory(point);
  if (!pricer_.fits_device(largest)) {
    note_infeasible(smallest_point, bound);
    return add_infeasible(box, Constraint::device_memory, largest.peak_device_bytes, regions);
  }
  if (!pricer_.fits_host(smallest)) {
    note_infeasible(smallest_point, bound);
    return add_infeasible(box, Constraint::host_memory, smallest.peak_host_bytes_per_node, regions);
  }
  if (single)
    price_point(box, point, regions);
  else
    split(box, pricer_.fits_device(smallest), point, regions);
}

void TreatmentSearch::price_point(const Box& box, const specs::RegularPlacement& point,
                                  std::vector<Region>& regions) {
  const Solved& found = solved(point);
  const bool several = members_of_point_ > 1;
  if (!found.price)
    return add(box, {.kind = RegionKind::optimized, .rule = cuts_rule, .objective = found.least_objective},
               regions);
  const Price& price = *found.price;
  const Excess excess = excess_of(price, pricer_);
  if (excess.constraint) {
    const bool device = *excess.constraint == Constraint::device_memory;
    return add_infeasible(box, *excess.constraint,
                          device ? price.peak_device_bytes : price.peak_host_bytes_per_node, regions);
  }
  incumbents_.offer(mesh_index_, {point, price});
  if (found.bounds_all) dominators_->push_back({point.recomputation, point.offload, found.least_objective});
  if (several)
    add(box, {.kind = RegionKind::optimized, .rule = cuts_rule, .objective = found.least_objective}, regions);
  else
    add(box, {.kind = RegionKind::priced, .rule = fits_rule, .objective = price.objective}, regions);
}

// Where the smallest shares fit they come first, alone: what is left is then slower. Else the longest side is
// halved, the smaller shares first.
void TreatmentSearch::split(const Box& box, bool smallest_fits, specs::RegularPlacement& point,
                            std::vector<Region>& regions) {
  Box rest = box;
  if (smallest_fits) {
    Box corner = box;
    for (Range& range : corner) range.end = range.begin + 1;
    settle_box(corner, point, regions);
    for (std::size_t part = 0; part < 3; ++part) {
      if (rest[part].size() == 1) continue;
      Box slice = rest;
      ++slice[part].begin;
      settle_box(slice, point, regions);
      rest[part].end = rest[part].begin + 1;
    }
    return;
  }
  const auto longest = std::max_element(rest.begin(), rest.end(),
                                        [](const Range& a, const Range& b) { return a.size() < b.size(); });
  const std::size_t middle = longest->begin + longest->size() / 2;
  const Range whole = *longest;
  longest->end = middle;
  settle_box(rest, point, regions);
  *longest = {middle, whole.end};
  settle_box(rest, point, regions);
}

}  // namespace planner
