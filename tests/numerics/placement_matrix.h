// The placements of the equality matrix, generated from the runtime's table of capabilities: what the table
// gains, the matrix tries.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "specs/language/stack.h"
#include "tests/numerics/training_case.h"

namespace runtime::numerics {

inline constexpr std::int64_t most_ranks = 8;

struct MatrixValue {
  std::string name;
  std::function<void(TrainingCase&)> apply;
};

/// The first value is the plain one.
struct MatrixDimension {
  std::string name;
  std::vector<MatrixValue> values;
};

/// Every dimension in which placements of the runtime differ, with each value that `stack` has.
std::vector<MatrixDimension> matrix_dimensions(const specs::StackSpec& stack);

/// Each value of each dimension on a GPT and on a Llama, with as little else as it needs.
std::vector<TrainingCase> single_placements(const specs::StackSpec& stack);

/// Of the schedules that exist as generators alone, which the executor runs though no plan of the stack asks
/// for them.
std::vector<TrainingCase> generator_only_placements(const specs::StackSpec& stack);

/// Every pair of values that any placement can join stands in at least `times` of them.
std::vector<TrainingCase> paired_placements(const specs::StackSpec& stack, int times);

/// The product of the dimensions that decide where parameters, gradients and activations lie, with the others
/// at their plain values.
std::vector<TrainingCase> all_placements(const specs::StackSpec& stack);

}  // namespace runtime::numerics
