// Where the seconds of a step go.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cost_models/rank_price.h"
#include "specs/plan/cost_breakdown.h"

namespace cost_models {

/// The critical path of the job, and each rank's own step, term by term. What a rank waits is its bubble.
class TimeAccount {
 public:
  /// Keeps references.
  TimeAccount(const StepSeconds& step, double micro_batches, std::vector<specs::TimeEntry>& entries)
      : step_(step), micro_batches_(micro_batches), entries_(entries) {}

  /// `terms` and `flops` are of one micro-batch.
  void add_rank(std::int64_t pipeline_rank, const StepEndSeconds& end, const TermSeconds& terms,
                double flops);

 private:
  double add_end(std::int64_t pipeline_rank, const StepEndSeconds& end);
  void add(std::int64_t pipeline_rank, specs::TimeTerm term, double seconds, double flops = 0);

  const StepSeconds& step_;
  double micro_batches_;
  std::vector<specs::TimeEntry>& entries_;
  std::array<std::size_t, time_terms> place_{};  ///< of a term of this rank in `entries_`, from 1; 0: nowhere
};

}  // namespace cost_models
