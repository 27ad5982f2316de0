#include "planner/verify_certificate.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include <fmt/format.h>

#include "cost_models/estimate.h"
#include "planner/pricing.h"
#include "planner/written_out_space.h"
#include "specs/language/catalog.h"

namespace planner {
namespace {

constexpr double relative_rounding = 1e-9;

/// What the certificate says of one mesh, its regions together.
struct MeshClaim {
  std::int64_t priced = 0;
  std::int64_t infeasible = 0;
};

std::int64_t number(const std::string& digits) { return digits.empty() ? 0 : std::stoll(digits); }

std::string mesh_name(const specs::CertificateRegion& region) {
  std::string name;
  for (const specs::RegionDimension& dimension : region.dimensions)
    name += fmt::format("{}{}={}", name.empty() ? "" : " ", dimension.dimension,
                        dimension.values.size() == 1 ? dimension.values.front() : "several");
  return name;
}

class Verifier {
 public:
  Verifier(const specs::Plan& plan, const specs::StackSpec& stack, const VerifyOptions& options)
      : plan_(plan),
        options_(options),
        estimator_(plan.inputs),
        space_(plan.inputs, stack),
        random_(options.seed) {}

  Verification run() {
    check_plan();
    check_counts();
    check_meshes();
    return std::move(result_);
  }

 private:
  void find(std::string region, std::string message) {
    result_.findings.push_back({std::move(region), std::move(message)});
  }

  bool fits(const specs::CostBreakdown& cost) const {
    return cost.peak_device_bytes <= estimator_.usable_device_bytes() &&
           cost.peak_host_bytes_per_node <= estimator_.usable_host_bytes();
  }

  void check_plan() {
    const specs::CostBreakdown cost = estimator_.estimate(plan_.placement);
    const double objective = objective_of(plan_.inputs.search.objective, cost);
    if (std::abs(objective - plan_.objective) > relative_rounding * objective)
      find("", fmt::format("the plan's objective is {}, priced anew it is {}", plan_.objective, objective));
    if (!fits(cost))
      find("", fmt::format("the plan needs {} bytes a device, {} are usable", cost.peak_device_bytes,
                           estimator_.usable_device_bytes()));
  }

  void check_counts() {
    std::int64_t priced = 0, infeasible = 0;
    for (const specs::CertificateRegion& region : plan_.certificate.regions) {
      MeshClaim& claim = claims_[mesh_name(region)];
      const std::int64_t candidates = number(region.candidates);
      const bool is_priced = region.kind == specs::RegionKind::priced;
      (is_priced ? claim.priced : claim.infeasible) += candidates;
      (is_priced ? priced : infeasible) += candidates;
      if (is_priced && region.best < plan_.objective * (1 - relative_rounding))
        find(mesh_name(region),
             fmt::format("its best is {}, below the plan's {}", region.best, plan_.objective));
      ++result_.regions;
    }
    const auto equal = [&](const char* what, std::int64_t sum, const std::string& claimed) {
      if (sum != number(claimed))
        find("", fmt::format("{}: the regions add up to {}, not {}", what, sum, claimed));
    };
    equal("priced", priced, plan_.certificate.priced_candidates);
    equal("infeasible", infeasible, plan_.certificate.infeasible_candidates);
    equal("the whole space", priced + infeasible, plan_.certificate.space_candidates);
  }

  void check_meshes() {
    for (const WrittenOutMesh& mesh : space_.meshes()) {
      const auto claim = claims_.find(mesh.name);
      if (claim == claims_.end()) {
        find(mesh.name, fmt::format("{} candidates are in no region", mesh.members.size()));
        continue;
      }
      check_mesh(mesh, claim->second);
      result_.counted_candidates += static_cast<std::int64_t>(mesh.members.size());
      claims_.erase(claim);
    }
    for (const auto& [name, claim] : claims_) find(name, "no candidate has this mesh");
  }

  void check_mesh(const WrittenOutMesh& mesh, const MeshClaim& claim) {
    const auto counted = static_cast<std::int64_t>(mesh.members.size());
    if (claim.priced + claim.infeasible != counted)
      find(mesh.name, fmt::format("has {} candidates, not {}", counted, claim.priced + claim.infeasible));
    const std::vector<std::size_t> drawn = draw(mesh);
    std::int64_t fitting = 0;
    for (const std::size_t member : drawn) {
      const specs::CostBreakdown cost = estimator_.estimate(
          specs::regular_placement(mesh.members[member], specs::block_count(plan_.inputs.model)));
      ++result_.priced_members;
      if (!fits(cost)) continue;
      ++fitting;
      const double objective = objective_of(plan_.inputs.search.objective, cost);
      const double least = plan_.objective * (1 - plan_.certificate.gap) * (1 - relative_rounding);
      if (objective < least)
        find(mesh.name, fmt::format("a member fits and has {}, below the plan's {} and gap", objective,
                                    plan_.objective));
    }
    const auto drawn_count = static_cast<std::int64_t>(drawn.size());
    const bool whole = drawn_count == counted;
    if (fitting > claim.priced || (whole && fitting != claim.priced))
      find(mesh.name,
           fmt::format("{} of {} members fit, the certificate says {}", fitting, drawn_count, claim.priced));
    if (drawn_count - fitting > claim.infeasible)
      find(mesh.name, fmt::format("{} of {} members do not fit, the certificate says {}",
                                  drawn_count - fitting, drawn_count, claim.infeasible));
  }

  /// All members of a small mesh; else half at random and half those most like the plan.
  std::vector<std::size_t> draw(const WrittenOutMesh& mesh) {
    const std::size_t count = mesh.members.size();
    const auto wanted = static_cast<std::size_t>(options_.samples_per_region);
    std::vector<std::size_t> order(count);
    for (std::size_t index = 0; index < count; ++index) order[index] = index;
    if (count <= wanted) return order;
    std::vector<int> unlike(count);
    for (std::size_t index = 0; index < count; ++index) unlike[index] = differences(mesh.members[index]);
    std::shuffle(order.begin(), order.end(), random_);
    std::stable_sort(order.begin() + static_cast<std::ptrdiff_t>(wanted / 2), order.end(),
                     [&](std::size_t a, std::size_t b) { return unlike[a] < unlike[b]; });
    order.resize(wanted);
    return order;
  }

  /// In how many choices inside the mesh the member differs from the plan.
  int differences(const specs::RegularPlacement& member) const {
    const specs::Placement& plan = plan_.placement;
    const specs::PipelineStage& stage = plan.stages.front();
    const specs::Recomputation recomputation =
        stage.recomputation.empty() ? specs::Recomputation::none : stage.recomputation.front().mode;
    return (member.micro_batch != plan.micro_batch) + (member.schedule != plan.schedule) +
           (member.virtual_stages != plan.virtual_stages) +
           (member.sequence_parallel != plan.sequence_parallel) + (member.recomputation != recomputation) +
           (member.zero != stage.zero) + (member.offload != stage.offload);
  }

  const specs::Plan& plan_;
  const VerifyOptions options_;
  const cost_models::Estimator estimator_;
  const WrittenOutSpace space_;
  std::mt19937_64 random_;
  std::map<std::string, MeshClaim> claims_;
  Verification result_;
};

}  // namespace

specs::Result<Verification> verify_certificate(const specs::Plan& plan, const VerifyOptions& options) {
  specs::Result<Verification> result;
  if (plan.certificate.method != "exhaustive")
    result.diagnostics.error(
        {}, fmt::format("a certificate of method \"{}\" cannot be verified", plan.certificate.method),
        "plan again with this program");
  const specs::Result<specs::StackSpec> stack = specs::catalog_stack(plan.inputs.training.stack);
  result.diagnostics.append(stack.diagnostics);
  if (!result.diagnostics.has_errors()) result.value = Verifier(plan, *stack, options).run();
  return result;
}

}  // namespace planner
