// What `dsplan plan` and `dsplan inspect` say about a plan.
#pragma once

#include "planner/report/report.h"
#include "specs/plan/plan.h"

namespace planner {

/// Everything that depends on the plan alone.
struct PlanReportOptions {
  std::int64_t usable_device_bytes = 0;
  bool every_pipeline_rank = false;  ///< a row for each, the schedule, the rank mapping
};

/// The placement and what it costs, why it is this one, time by term, memory by class, the runners-up, the
/// certificate, the communication environment and advice.
Report plan_report(const specs::Plan& plan, const PlanReportOptions& options);

/// The first section alone.
Facts plan_summary(const specs::Plan& plan, std::int64_t usable_device_bytes);

/// Step time, throughput, memory, money and energy of a price.
void add_cost_facts(const specs::CostBreakdown& cost, std::int64_t usable_device_bytes,
                    std::vector<Fact>& facts);

/// What the search claims, in words; empty without a certificate.
Facts certificate_facts(const specs::Certificate& certificate);

/// Advice but for what says which placement memory excludes.
Notes advice_notes(const specs::Plan& plan);

Table environment_table(const specs::Plan& plan);

}  // namespace planner
