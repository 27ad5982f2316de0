#include "cost_models/time_account.h"

namespace cost_models {
namespace {

using specs::TimeTerm;

bool is_product(TimeTerm term) {
  return term == TimeTerm::attention || term == TimeTerm::feed_forward || term == TimeTerm::output_layer;
}

double product_seconds(const TermSeconds& terms) {
  return at(terms, TimeTerm::attention) + at(terms, TimeTerm::feed_forward) +
         at(terms, TimeTerm::output_layer);
}

}  // namespace

void TimeAccount::add_rank(std::int64_t pipeline_rank, const StepEndSeconds& end, const TermSeconds& terms,
                           double flops) {
  place_.fill(0);
  double accounted = 0;
  for (std::size_t i = 0; i < time_terms; ++i) {
    if (terms[i] == 0) continue;
    const auto term = static_cast<TimeTerm>(i);
    const double of_flops = is_product(term) ? flops * terms[i] / product_seconds(terms) : 0;
    add(pipeline_rank, term, terms[i] * micro_batches_, of_flops * micro_batches_);
    accounted += terms[i] * micro_batches_;
  }
  add(pipeline_rank, TimeTerm::pipeline_transfer, step_.transfer);
  accounted += step_.transfer;
  accounted += add_end(pipeline_rank, end);
  add(pipeline_rank, TimeTerm::fixed_overhead, step_.fixed);
  accounted += step_.fixed;
  // What rounding leaves of a rank that never waits is no bubble.
  const double bubble = step_.total() - accounted;
  if (bubble > 1e-12 * step_.total()) add(pipeline_rank, TimeTerm::pipeline_bubble, bubble);
}

double TimeAccount::add_end(std::int64_t pipeline_rank, const StepEndSeconds& end) {
  add(pipeline_rank, TimeTerm::gradient_reduction, end.gradient_reduction);
  add(pipeline_rank, TimeTerm::parameter_gather, end.parameter_gather);
  add(pipeline_rank, TimeTerm::optimizer_update, end.optimizer_update);
  add(pipeline_rank, TimeTerm::offload_transfer, end.offload_transfer);
  return end.total();
}

void TimeAccount::add(std::int64_t pipeline_rank, TimeTerm term, double seconds, double flops) {
  if (seconds == 0) return;
  std::size_t& place = place_[static_cast<std::size_t>(term)];
  if (place != 0) {
    specs::TimeEntry& same = entries_[place - 1];
    same.exposed_seconds += seconds;
    same.busy_seconds += seconds;
    same.flops += flops;
    return;
  }
  specs::TimeEntry entry;
  entry.term = term;
  entry.pipeline_rank = pipeline_rank;
  entry.exposed_seconds = entry.busy_seconds = seconds;
  entry.flops = flops;
  entries_.push_back(entry);
  place = entries_.size();
}

}  // namespace cost_models
