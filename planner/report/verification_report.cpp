#include "planner/report/verification_report.h"

#include <fmt/format.h>

#include "planner/wording/quantity.h"

namespace planner {

namespace {

std::string answer_of(const Verification& verification) {
  if (!verification.holds()) return "the certificate does not hold";
  if (verification.complete) return "every claim that was checked holds";
  return fmt::format(
      "every claim that was checked holds, but the search was stopped: another placement may be {} better",
      format_gap(verification.gap_fraction));
}

}  // namespace

Report verification_report(const Verification& verification) {
  Report report;
  Facts facts{"verification", "Verification of the certificate", {}};
  facts.facts.push_back({"holds", "answer", Quantity::text, answer_of(verification), {}});
  facts.facts.push_back({"regions", "regions", Quantity::count, verification.regions, {}});
  facts.facts.push_back({"counted_candidates", "candidates", Quantity::text,
                         with_commas(verification.counted_candidates), "counted anew"});
  facts.facts.push_back(
      {"priced_members", "priced", Quantity::count, verification.priced_members, "by the full account"});
  report.sections.push_back(std::move(facts));
  Table table{"findings", "What does not hold", {{"region", "region"}, {"finding", "finding"}}, {}, false};
  for (const VerifyFinding& finding : verification.findings)
    table.rows.push_back({finding.region, finding.message});
  report.sections.push_back(std::move(table));
  return report;
}

}  // namespace planner
