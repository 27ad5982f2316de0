#include "planner/search/exhaustive_search.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "planner/search/near_misses.h"
#include "planner/space/written_out_choices.h"
#include "planner/space/written_out_space.h"

namespace planner {
namespace {

using specs::RegionKind;

/// Everything about one mesh.
struct MeshAccount {
  Count candidates;
  std::optional<PricedCandidate> best;
  std::int64_t over_device = 0, over_host = 0;
  std::int64_t least_device = std::numeric_limits<std::int64_t>::max();
  std::int64_t least_host = least_device;
};

class Reference {
 public:
  Reference(const specs::Experiment& experiment, const specs::StackSpec& stack, const Pricer& pricer,
            const std::atomic<bool>* stop)
      : experiment_(experiment),
        space_(experiment, stack),
        choices_(experiment, stack),
        pricer_(pricer),
        stop_(stop),
        near_misses_(pricer) {}

  SearchResult run() {
    result_.method = exhaustive_method;
    std::vector<PricedCandidate> best_of_meshes;
    for (const WrittenOutMesh& mesh : space_.meshes()) {
      MeshAccount account;
      space_.for_each_member(mesh, [&](const specs::RegularPlacement& member) { look_at(member, account); });
      if (account.best) best_of_meshes.push_back(*account.best);
      result_.regions.push_back(region_of(mesh, account));
    }
    choose_best(std::move(best_of_meshes), result_);
    if (result_.best) {
      result_.lower_bound =
          result_.complete ? result_.best->price.objective : 0;  // what was not priced may be anything
      result_.nearest_infeasible.reset();
      result_.near_miss = near_misses_.better_than(result_.best->price);
    }
    return std::move(result_);
  }

 private:
  bool stopped() const { return stop_ != nullptr && stop_->load(std::memory_order_relaxed); }

  void look_at(const specs::RegularPlacement& member, MeshAccount& account) {
    const Count before = account.candidates;
    choices_.for_each(member, [&](const specs::Placement& choice) {
      if (stopped()) {
        result_.complete = false;
        return false;
      }
      look_at(member, choice, account);
      return true;
    });
    // What was not looked at is counted, too.
    if (!result_.complete) account.candidates = before + choices_.count(member);
  }

  void look_at(const specs::RegularPlacement& member, const specs::Placement& choice, MeshAccount& account) {
    ++account.candidates;
    PricedCandidate candidate{member, pricer_.price_of_choice(member, choice), nullptr};
    const auto keep = [&](std::optional<PricedCandidate>& kept) {
      candidate.choice = std::make_shared<const specs::Placement>(choice);
      kept = candidate;
    };
    const Excess excess = excess_of(candidate.price, pricer_);
    if (!excess.constraint) {
      if (!account.best || is_better(candidate.price, account.best->price)) keep(account.best);
      return;
    }
    ++(*excess.constraint == Constraint::device_memory ? account.over_device : account.over_host);
    account.least_device = std::min(account.least_device, candidate.price.peak_device_bytes);
    account.least_host = std::min(account.least_host, candidate.price.peak_host_bytes_per_node);
    std::optional<PricedCandidate>& nearest = result_.nearest_infeasible;
    if (!nearest || excess.bytes < excess_of(nearest->price, pricer_).bytes) keep(nearest);
    if (near_misses_.dominates(candidate.price, candidate.price.objective)) return;
    candidate.choice = std::make_shared<const specs::Placement>(choice);
    near_misses_.add(candidate);
  }

  Region region_of(const WrittenOutMesh& mesh, const MeshAccount& account) {
    Region region;
    region.candidates = account.candidates;
    const auto add = [&](const char* name, std::string value) {
      region.dimensions.push_back({name, {std::move(value)}});
    };
    const specs::RegularPlacement& corner = mesh.corner;
    add("tensor", std::to_string(corner.tensor));
    add("context", std::to_string(corner.context));
    add("pipeline", std::to_string(corner.pipeline));
    add("data", std::to_string(corner.data));
    if (experiment_.model.mixture) {
      add("expert", std::to_string(corner.expert));
      add("expert_tensor", std::to_string(corner.expert_tensor));
    }
    add("axis_order", specs::to_string(corner.order));
    if (account.best || account.over_device * account.over_host != 0 || !result_.complete) {
      region.rule = "priced";
      region.objective = account.best ? account.best->price.objective : 0;
      result_.priced += region.candidates;
    } else {
      const bool device = account.over_device > 0;
      region.kind = RegionKind::infeasible;
      region.rule = specs::name_of(device ? Constraint::device_memory : Constraint::host_memory);
      region.needed_bytes = device ? account.least_device : account.least_host;
      result_.infeasible += region.candidates;
    }
    result_.candidates += region.candidates;
    return region;
  }

  const specs::Experiment& experiment_;
  const WrittenOutSpace space_;
  const WrittenOutChoices choices_;
  const Pricer& pricer_;
  const std::atomic<bool>* stop_;
  NearMisses near_misses_;
  SearchResult result_;
};

}  // namespace

SearchResult exhaustive_search(const specs::Experiment& experiment, const specs::StackSpec& stack,
                               const Pricer& pricer, const std::atomic<bool>* stop) {
  return Reference(experiment, stack, pricer, stop).run();
}

}  // namespace planner
