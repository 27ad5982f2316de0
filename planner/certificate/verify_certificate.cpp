#include "planner/certificate/verify_certificate.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <optional>
#include <random>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cost_models/estimate.h"
#include "planner/certificate/claimed_region.h"
#include "planner/certificate/region_index.h"
#include "planner/pricing/pricing.h"
#include "planner/space/written_out_choices.h"
#include "planner/space/written_out_space.h"
#include "specs/language/catalog.h"
#include "specs/plan/json_keys.h"
#include "specs/plan/placement_check.h"
#include "specs/plan/plan_keys.h"

namespace planner {
namespace {

using specs::RegionKind;
using specs::RegularPlacement;

constexpr double relative_rounding = 1e-9;
/// Some outer points of a region may have no member: how often to draw another.
constexpr int most_attempts = 64;

std::string name_of(const specs::CertificateRegion& region) {
  std::string name;
  for (const specs::RegionDimension& dimension : region.dimensions)
    name += fmt::format("{}{}={}", name.empty() ? "" : " ", dimension.dimension,
                        fmt::join(dimension.values, ","));
  return name.empty() ? "all of the space" : name;
}

/// The first stage's mesh and treatments, and how a stage recomputes that does, whatever the cuts.
std::optional<RegularPlacement> regular_like(specs::Placement placement, std::int64_t layers) {
  if (placement.stages.empty()) return std::nullopt;
  specs::RecomputationRun recomputed;
  for (const specs::PipelineStage& stage : placement.stages)
    if (!stage.recomputation.empty()) recomputed = stage.recomputation.front();
  RegularPlacement even;
  even.pipeline = placement.pipeline_ranks();
  even.virtual_stages = placement.virtual_stages;
  even.schedule = placement.schedule;
  even.recomputation = recomputed.mode;
  even.recomputed_modules = recomputed.modules;
  const std::vector<specs::PipelineStage> stages = specs::regular_placement(even, layers).stages;
  for (std::size_t index = 0; index < placement.stages.size(); ++index) {
    placement.stages[index].units = stages.at(index).units;
    placement.stages[index].recomputation = stages[index].recomputation;
  }
  return specs::as_regular(placement, layers);
}

class Verifier {
 public:
  Verifier(const specs::Plan& plan, const specs::StackSpec& stack, const VerifyOptions& options)
      : plan_(plan),
        options_(options),
        layers_(specs::block_count(plan.inputs.model)),
        estimator_(plan.inputs),
        space_(plan.inputs, stack),
        random_(options.seed) {
    if (plan.inputs.cluster.groups.size() > 1 || WrittenOutChoices(plan.inputs, stack).several())
      choices_.emplace(plan.inputs, stack);
  }

  Verification run() {
    check_plan();
    for (const specs::CertificateRegion& region : plan_.certificate.regions)
      regions_.emplace_back(region, space_, plan_.inputs.training.global_batch, choices());
    check_counts();
    index_.emplace(regions_);
    for (std::size_t region = 0; region < regions_.size(); ++region) check_region(region);
    result_.regions = static_cast<std::int64_t>(regions_.size());
    result_.complete = plan_.certificate.complete;
    result_.gap_fraction = plan_.certificate.gap;
    return std::move(result_);
  }

 private:
  const WrittenOutChoices* choices() const { return choices_ ? &*choices_ : nullptr; }

  void find(std::string region, std::string message) {
    result_.findings.push_back({std::move(region), std::move(message)});
  }

  double objective(const specs::CostBreakdown& cost) const {
    return objective_of(plan_.inputs.search.objective, cost);
  }

  void check_plan() {
    const specs::CostBreakdown cost = estimator_.estimate(plan_.placement);
    const double anew = objective(cost);
    if (!same(plan_.objective, anew))
      find("", fmt::format("the plan's objective is {}, priced anew it is {}", plan_.objective, anew));
    compare("prediction", account(plan_.prediction), account(cost));
    for (const cost_models::RankBytes& rank : estimator_.rank_bytes(plan_.placement)) {
      const std::int64_t device = estimator_.usable_device_bytes(rank.device_group);
      const std::int64_t host = estimator_.usable_host_bytes(rank.device_group);
      if (rank.device > device)
        find("", fmt::format("pipeline rank {} needs {} bytes a device, {} are usable", rank.pipeline_rank,
                             rank.device, device));
      if (rank.host_per_node > host)
        find("", fmt::format("pipeline rank {} needs {} bytes of host memory a node, {} are usable",
                             rank.pipeline_rank, rank.host_per_node, host));
    }
    check_runners_up();
    for (const specs::RunnerUp& runner_up : plan_.runners_up)
      if (runner_up.objective < plan_.objective * (1 - relative_rounding))
        find("", fmt::format("a runner-up's objective is {}, below the plan's {}", runner_up.objective,
                             plan_.objective));
    if (const auto regular = regular_like(plan_.placement, layers_)) best_.push_back(*regular);
    for (const specs::RunnerUp& runner_up : plan_.runners_up)
      if (const auto regular = regular_like(runner_up.placement, layers_)) best_.push_back(*regular);
  }

  static nlohmann::ordered_json account(specs::CostBreakdown cost) {
    specs::JsonKeyWriter writer;
    specs::visit_keys(writer, cost);
    return writer.object();
  }

  /// Claimed numbers and names, key by key.
  void compare(const std::string& key, const nlohmann::ordered_json& claimed,
               const nlohmann::ordered_json& anew) {
    if (claimed.is_structured() && anew.is_structured() && claimed.size() == anew.size()) {
      auto other = anew.begin();
      std::size_t index = 0;
      for (auto entry = claimed.begin(); entry != claimed.end(); ++entry, ++other)
        compare(fmt::format("{}/{}", key, claimed.is_object() ? entry.key() : std::to_string(index++)),
                *entry, *other);
      return;
    }
    const bool alike = claimed.is_number() && anew.is_number()
                           ? same(claimed.get<double>(), anew.get<double>())
                           : claimed == anew;
    if (alike) return;
    const auto shown = [](const nlohmann::ordered_json& value) {
      return value.is_structured() ? fmt::format("{} entries", value.size()) : value.dump();
    };
    find("", fmt::format("{} is {}, priced anew it is {}", key, shown(claimed), shown(anew)));
  }

  static bool same(double claimed, double anew) {
    return std::abs(claimed - anew) <= relative_rounding * std::abs(anew);
  }

  void check_runners_up() {
    for (std::size_t index = 0; index < plan_.runners_up.size(); ++index) {
      const specs::RunnerUp& claimed = plan_.runners_up[index];
      const specs::CostBreakdown cost = estimator_.estimate(claimed.placement);
      const auto equal = [&](std::string_view what, double said, double anew) {
        if (!same(said, anew))
          find("", fmt::format("runners_up/{}/{} is {}, priced anew it is {}", index, what, said, anew));
      };
      equal("objective", claimed.objective, objective(cost));
      equal("step_seconds", claimed.step_seconds, cost.step_seconds);
      equal("cost_per_step_dollars", claimed.cost_per_step_dollars, cost.cost_per_step_dollars);
      equal("energy_per_step_joules", claimed.energy_per_step_joules, cost.energy_per_step_joules);
      equal("peak_device_bytes", static_cast<double>(claimed.peak_device_bytes),
            static_cast<double>(cost.peak_device_bytes));
    }
  }

  void check_counts() {
    Count priced = 0, infeasible = 0, bounded = 0;
    for (const ClaimedRegion& region : regions_) {
      const specs::CertificateRegion& claim = region.claim();
      for (const std::string& dimension : region.unknown_dimensions())
        find(name_of(claim), fmt::format("\"{}\" is no dimension", dimension));
      if (region.members().str() != claim.candidates)
        find(name_of(claim), fmt::format("holds {} members, the certificate says {}", region.members().str(),
                                         claim.candidates));
      (claim.kind == RegionKind::infeasible ? infeasible
       : claim.kind == RegionKind::bounded  ? bounded
                                            : priced) += region.members();
    }
    const auto equal = [&](const char* what, const Count& sum, const std::string& claimed) {
      if (sum.str() != claimed)
        find("", fmt::format("{}: the regions add up to {}, not {}", what, sum.str(), claimed));
    };
    equal("priced", priced, plan_.certificate.priced_candidates);
    equal("infeasible", infeasible, plan_.certificate.infeasible_candidates);
    equal("bounded", bounded, plan_.certificate.bounded_candidates);
    const specs::CertificateRegion everything;
    const ClaimedRegion whole(everything, space_, plan_.inputs.training.global_batch, choices());
    result_.counted_candidates = whole.members().str();
    equal("the whole space", whole.members(), plan_.certificate.space_candidates);
    equal("the regions together", priced + infeasible + bounded, result_.counted_candidates);
  }

  void check_region(std::size_t number) {
    const ClaimedRegion& region = regions_[number];
    const specs::CertificateRegion& claim = region.claim();
    check_against_plan(claim);
    double least = std::numeric_limits<double>::infinity();
    const bool whole = region.members() <= options_.samples_per_region;
    if (whole) {
      region.for_each([&](const RegularPlacement& member) { check_all_choices(number, member, least); });
    } else {
      for (std::int64_t drawn = 0; drawn < options_.samples_per_region; ++drawn) {
        const bool near = drawn % 2 == 1 && !best_.empty();
        auto member =
            near ? region.draw_near(best_[static_cast<std::size_t>(drawn / 2) % best_.size()], random_)
                 : region.draw(random_);
        for (int attempt = 0; !member && attempt < most_attempts; ++attempt) member = region.draw(random_);
        if (member) check_member(number, *member, least);
      }
    }
    if (whole && claim.kind == RegionKind::priced && std::isfinite(least) &&
        std::abs(least - claim.best) > relative_rounding * least)
      find(name_of(claim),
           fmt::format("its best member that fits has {}, the certificate says {}", least, claim.best));
  }

  void check_against_plan(const specs::CertificateRegion& claim) {
    const double least = plan_.objective * (1 - plan_.certificate.gap) * (1 - relative_rounding);
    if (claim.kind == RegionKind::bounded && claim.bound < least)
      find(name_of(claim), fmt::format("its bound is {}, below the plan's {} and gap {}", claim.bound,
                                       plan_.objective, plan_.certificate.gap));
    if (claim.kind == RegionKind::optimized && claim.best < least)
      find(name_of(claim), fmt::format("no member is below {}, which is below the plan's {} and gap {}",
                                       claim.best, plan_.objective, plan_.certificate.gap));
    if (claim.kind == RegionKind::priced && claim.best < plan_.objective * (1 - relative_rounding) &&
        claim.best != 0)
      find(name_of(claim), fmt::format("its best is {}, below the plan's {}", claim.best, plan_.objective));
  }

  void check_all_choices(std::size_t number, const RegularPlacement& member, double& least) {
    if (!choices_) return check_placement(number, member, specs::regular_placement(member, layers_), least);
    if (choices_->count(member) == 0) return;  // going through all cuts to find none can take forever
    choices_->for_each(member, [&](const specs::Placement& placement) {
      check_placement(number, member, placement, least);
    });
  }

  void check_member(std::size_t number, const RegularPlacement& member, double& least) {
    if (choices_ && choices_->count(member) == 0) return;
    check_placement(number, member,
                    choices_ ? choices_->draw(member, random_) : specs::regular_placement(member, layers_),
                    least);
  }

  void check_placement(std::size_t number, const RegularPlacement& member, const specs::Placement& placement,
                       double& least) {
    const specs::CertificateRegion& claim = regions_[number].claim();
    const auto& inputs = plan_.inputs;
    for (const specs::PlacementViolation& violation :
         specs::placement_violations(placement, inputs.model, inputs.cluster, inputs.training))
      return find(name_of(claim), "a member is no legal placement: " + violation.message);
    const std::size_t second = index_->another_that_holds(member, number);
    if (second != RegionIndex::none)
      return find(name_of(claim), "shares a member with " + name_of(regions_[second].claim()));
    const specs::CostBreakdown cost = estimator_.estimate(placement);
    ++result_.priced_members;
    const double price = objective(cost);
    const cost_models::Estimator::Fits room =
        inputs.cluster.groups.size() > 1
            ? estimator_.fits(placement)
            : cost_models::Estimator::Fits{cost.peak_device_bytes <= estimator_.usable_device_bytes(),
                                           cost.peak_host_bytes_per_node <= estimator_.usable_host_bytes()};
    const bool fits = room.both();
    if (fits) least = std::min(least, price);
    const double claimed = claim.kind == RegionKind::bounded ? claim.bound : claim.best;
    switch (claim.kind) {
      case RegionKind::infeasible: {
        // Of the inner choices of a point some may break the one limit and some the other.
        const bool device = claim.rule == "device memory";
        if (choices_ ? fits : device ? room.device : room.host)
          find(name_of(claim),
               fmt::format("a member does not break {}: {} bytes a device, {} a node", claim.rule,
                           cost.peak_device_bytes, cost.peak_host_bytes_per_node));
        return;
      }
      case RegionKind::bounded:
        if (price < claimed * (1 - relative_rounding))
          find(name_of(claim), fmt::format("a member has {}, below the bound {}", price, claimed));
        return;
      case RegionKind::priced:
      case RegionKind::optimized:
        if (fits && price < claimed * (1 - relative_rounding))
          find(name_of(claim), fmt::format("a member that fits has {}, below the best {}", price, claimed));
        return;
    }
  }

  const specs::Plan& plan_;
  const VerifyOptions options_;
  const std::int64_t layers_;
  const cost_models::Estimator estimator_;
  const WrittenOutSpace space_;
  std::optional<WrittenOutChoices> choices_;
  std::mt19937_64 random_;
  std::deque<ClaimedRegion> regions_;
  std::optional<RegionIndex> index_;
  std::vector<RegularPlacement> best_;
  Verification result_;
};

}  // namespace

specs::Result<Verification> verify_certificate(const specs::Plan& plan, const VerifyOptions& options) {
  specs::Result<Verification> result;
  const std::string& method = plan.certificate.method;
  if (method != "exhaustive" && method != "branch-and-bound")
    result.diagnostics.error({}, fmt::format("a certificate of method \"{}\" cannot be verified", method),
                             "plan again with this program");
  const specs::Result<specs::StackSpec> stack = specs::stack_of(plan.inputs.training);
  result.diagnostics.append(stack.diagnostics);
  if (!result.diagnostics.has_errors()) result.value = Verifier(plan, *stack, options).run();
  return result;
}

}  // namespace planner
