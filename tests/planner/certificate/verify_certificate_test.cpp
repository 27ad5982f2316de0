#include "planner/certificate/verify_certificate.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include <gtest/gtest.h>

#include "planner/certificate/claimed_region.h"
#include "planner/plan/plan_experiment.h"
#include "planner/pricing/pricing.h"
#include "tests/planner/random_experiments.h"

namespace planner {
namespace {

using specs::RegionKind;

constexpr VerifyOptions whole{.samples_per_region = 5000};

/// Plans of random experiments; those for which nothing fits are left out.
std::vector<specs::Plan> plans(std::uint32_t seed, std::size_t count, std::uint64_t most_points,
                               SearchMethod method = SearchMethod::branch_and_bound) {
  testing::RandomExperiments experiments(seed);
  std::vector<specs::Plan> found;
  while (found.size() < count) {
    const auto outcome = plan_experiment(experiments.next(most_points), nullptr, method);
    if (outcome.ok() && outcome->plan) found.push_back(*outcome->plan);
  }
  return found;
}

std::string findings(const Verification& verification) {
  std::string text;
  for (const VerifyFinding& finding : verification.findings)
    text += finding.region + ": " + finding.message + "\n";
  return text;
}

TEST(VerifyCertificate, HoldsForWhatTheSearchWrites) {
  for (const specs::Plan& plan : plans(21, 25, 2000)) {
    const auto verification = verify_certificate(plan, whole);
    ASSERT_TRUE(verification.ok());
    EXPECT_TRUE(verification->holds()) << plan.inputs.training.stack << "\n" << findings(*verification);
    EXPECT_EQ(verification->counted_candidates, plan.certificate.space_candidates);
  }
}

TEST(VerifyCertificate, HoldsForWhatTheExhaustiveSearchWrites) {
  for (const specs::Plan& plan : plans(22, 6, 1500, SearchMethod::exhaustive)) {
    const auto verification = verify_certificate(plan, whole);
    ASSERT_TRUE(verification.ok());
    EXPECT_TRUE(verification->holds()) << plan.inputs.training.stack << "\n" << findings(*verification);
  }
}

TEST(VerifyCertificate, HoldsWithDrawnMembersToo) {
  for (const specs::Plan& plan : plans(23, 4, 20000)) {
    const auto verification = verify_certificate(plan);
    ASSERT_TRUE(verification.ok());
    EXPECT_TRUE(verification->holds()) << plan.inputs.training.stack << "\n" << findings(*verification);
  }
}

/// The smallest objective of a region, and of its members that fit.
struct Smallest {
  double of_all = std::numeric_limits<double>::infinity();
  double of_fitting = std::numeric_limits<double>::infinity();
};

Smallest smallest_in(const specs::Plan& plan, const specs::CertificateRegion& region) {
  const auto stack = specs::stack_of(plan.inputs.training);
  const WrittenOutSpace space(plan.inputs, *stack);
  const WrittenOutChoices choices(plan.inputs, *stack);
  const cost_models::Estimator estimator(plan.inputs);
  Smallest smallest;
  const auto look_at = [&](const specs::Placement& placement) {
    const specs::CostBreakdown cost = estimator.estimate(placement);
    const double objective = objective_of(plan.inputs.search.objective, cost);
    smallest.of_all = std::min(smallest.of_all, objective);
    if (cost.peak_device_bytes <= estimator.usable_device_bytes() &&
        cost.peak_host_bytes_per_node <= estimator.usable_host_bytes())
      smallest.of_fitting = std::min(smallest.of_fitting, objective);
  };
  ClaimedRegion(region, space, plan.inputs.training.global_batch, &choices)
      .for_each([&](const specs::RegularPlacement& member) { choices.for_each(member, look_at); });
  return smallest;
}

/// Verifies the plan with its certificate made false by `change(certificate, region)` at each region in turn
/// where it says that it changed anything; returns how many were changed.
int each_is_caught(const std::vector<specs::Plan>& all,
                   const std::function<bool(specs::Plan&, specs::CertificateRegion&)>& change) {
  int changed = 0;
  for (const specs::Plan& plan : all)
    for (std::size_t index = 0; index < plan.certificate.regions.size(); ++index) {
      specs::Plan false_plan = plan;
      if (!change(false_plan, false_plan.certificate.regions[index])) continue;
      ++changed;
      EXPECT_FALSE(verify_certificate(false_plan, whole)->holds())
          << plan.inputs.training.stack << ": " << to_string(plan.certificate.regions[index].dimensions);
    }
  return changed;
}

TEST(VerifyCertificate, ARaisedLowerBoundIsCaught) {
  const auto all = plans(31, 9, 400);
  EXPECT_GT(each_is_caught(all,
                           [](specs::Plan& plan, specs::CertificateRegion& region) {
                             if (region.kind != RegionKind::bounded) return false;
                             region.bound = 1.02 * smallest_in(plan, region).of_all;
                             if (!std::isfinite(region.bound)) return false;
                             plan.objective = std::min(plan.objective, region.bound);
                             return true;
                           }),
            20);
}

TEST(VerifyCertificate, ADroppedRegionIsCaught) {
  const auto all = plans(32, 5, 400);
  EXPECT_GT(each_is_caught(all,
                           [](specs::Plan& plan, specs::CertificateRegion& region) {
                             const Count left =
                                 Count(plan.certificate.space_candidates) - Count(region.candidates);
                             plan.certificate.space_candidates = left.str();
                             std::string& of_kind = region.kind == RegionKind::priced
                                                        ? plan.certificate.priced_candidates
                                                    : region.kind == RegionKind::infeasible
                                                        ? plan.certificate.infeasible_candidates
                                                        : plan.certificate.bounded_candidates;
                             of_kind = Count(Count(of_kind) - Count(region.candidates)).str();
                             const auto index = &region - plan.certificate.regions.data();
                             plan.certificate.regions.erase(plan.certificate.regions.begin() + index);
                             return true;
                           }),
            20);
}

TEST(VerifyCertificate, AChangedCountIsCaught) {
  const auto all = plans(33, 5, 400);
  EXPECT_GT(each_is_caught(all,
                           [](specs::Plan&, specs::CertificateRegion& region) {
                             region.candidates = Count(Count(region.candidates) + 1).str();
                             return true;
                           }),
            20);
}

/// Of its kind, so that every sum of the certificate stays right.
TEST(VerifyCertificate, ACountMovedToAnotherRegionIsCaught) {
  const auto all = plans(36, 5, 400);
  EXPECT_GT(each_is_caught(all,
                           [](specs::Plan& plan, specs::CertificateRegion& region) {
                             const auto other = std::find_if(
                                 plan.certificate.regions.begin(), plan.certificate.regions.end(),
                                 [&](const specs::CertificateRegion& candidate) {
                                   return &candidate != &region && candidate.kind == region.kind;
                                 });
                             if (other == plan.certificate.regions.end()) return false;
                             region.candidates = Count(Count(region.candidates) - 1).str();
                             other->candidates = Count(Count(other->candidates) + 1).str();
                             return true;
                           }),
            20);
}

TEST(VerifyCertificate, AFeasibleRegionThatIsCalledInfeasibleIsCaught) {
  const auto all = plans(34, 5, 400);
  EXPECT_GT(each_is_caught(
                all,
                [](specs::Plan& plan, specs::CertificateRegion& region) {
                  if (region.kind == RegionKind::infeasible) return false;
                  if (smallest_in(plan, region).of_fitting > 1e30) return false;
                  Count bounded(plan.certificate.bounded_candidates);
                  Count priced(plan.certificate.priced_candidates);
                  (region.kind == RegionKind::priced ? priced : bounded) -= Count(region.candidates);
                  plan.certificate.bounded_candidates = bounded.str();
                  plan.certificate.priced_candidates = priced.str();
                  plan.certificate.infeasible_candidates =
                      Count(Count(plan.certificate.infeasible_candidates) + Count(region.candidates)).str();
                  region.kind = RegionKind::infeasible;
                  region.rule = "device memory";
                  return true;
                }),
            20);
}

TEST(VerifyCertificate, ALoweredPlanIsCaught) {
  for (specs::Plan plan : plans(35, 3, 400)) {
    plan.objective *= 0.98;
    EXPECT_FALSE(verify_certificate(plan, whole)->holds());
  }
}

TEST(VerifyCertificate, AChangedPredictionIsCaught) {
  const specs::Plan plan = plans(36, 1, 400).front();
  const auto found = [&](const std::function<void(specs::Plan&)>& change) {
    specs::Plan changed = plan;
    change(changed);
    return findings(*verify_certificate(changed, {.samples_per_region = 1}));
  };
  EXPECT_EQ(found([](specs::Plan&) {}), "");
  EXPECT_NE(
      found([](specs::Plan& it) { it.prediction.step_seconds /= 2; }).find("prediction/step_seconds is"),
      std::string::npos);
  EXPECT_NE(found([](specs::Plan& it) {
              it.prediction.peak_device_bytes /= 2;
            }).find("prediction/peak_device_bytes is"),
            std::string::npos);
  EXPECT_NE(found([](specs::Plan& it) {
              it.prediction.time.front().exposed_seconds += 1;
            }).find("prediction/time/0/exposed_seconds is"),
            std::string::npos);
  EXPECT_NE(found([](specs::Plan& it) { it.prediction.memory.pop_back(); }).find("prediction/memory is"),
            std::string::npos);
  const std::string of_runner_up = found([](specs::Plan& it) {
    specs::RunnerUp& claimed = it.runners_up.emplace_back();
    claimed.placement = it.placement;
    claimed.objective = 2 * it.objective;
  });
  EXPECT_NE(of_runner_up.find("/objective is"), std::string::npos) << of_runner_up;
}

TEST(VerifyCertificate, OfASearchThatWasStoppedSaysThatBetterMayBeLeft) {
  specs::Plan plan = plans(24, 1, 500).front();
  EXPECT_TRUE(verify_certificate(plan, whole)->complete);
  plan.certificate.complete = false;
  plan.certificate.gap = 0.125;
  const auto verification = verify_certificate(plan, whole);
  ASSERT_TRUE(verification.ok());
  EXPECT_TRUE(verification->holds()) << findings(*verification);
  EXPECT_FALSE(verification->complete);
  EXPECT_EQ(verification->gap_fraction, 0.125);
}

}  // namespace
}  // namespace planner
