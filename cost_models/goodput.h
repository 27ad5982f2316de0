// What failures and checkpoints take from a run.
//
// With δ the stall of one checkpoint, M the job's mean time between failures and R the time to restart, the
// best interval is √(2 δ M) (Young 1974), and the useful share of wall time at an interval T is 1 / (1 + δ/T)
// · 1 / (1 + (T/2 + R)/M): each failure loses half an interval on average.
#pragma once

#include <cstdint>

namespace cost_models {

/// Mean seconds between failures of a job on `nodes` nodes that fail independently; 0 where they never do.
double mean_seconds_between_failures(double node_failures_per_hour, double nodes);

/// Young's interval; 0 where nothing fails or a checkpoint costs nothing.
double best_checkpoint_interval_seconds(double stall_seconds, double mean_seconds_between_failures);

double goodput_fraction(double interval_seconds, double stall_seconds, double mean_seconds_between_failures,
                        double restart_seconds);

/// Weights with their optimizer state: `weight_bytes` in full precision and two moments for each parameter.
std::int64_t checkpoint_bytes(std::int64_t parameters, double weight_bytes, double optimizer_bytes);

}  // namespace cost_models
