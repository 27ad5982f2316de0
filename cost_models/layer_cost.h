// Time of one micro-batch through each kind of unit on one rank: products, attention, memory-bound work,
// launch, and the communication inside the layer.
#pragma once

#include <array>
#include <cstdint>

#include "cost_models/cost_inputs.h"
#include "cost_models/parameters.h"
#include "specs/plan/cost_breakdown.h"
#include "specs/plan/placement.h"

namespace cost_models {

/// The part of a placement that fixes the cost of a layer.
struct LayerKey {
  std::int64_t tensor = 1;
  std::int64_t context = 1;
  std::int64_t expert = 1;
  std::int64_t expert_tensor = 1;
  std::int64_t micro_batch = 1;
  specs::ModuleTreatments modules;
  std::int64_t tensor_stride = 1;   ///< ranks between neighbours of the tensor axis; 1 without one
  std::int64_t context_stride = 1;  ///< the same of the context axis
  bool sequence_parallel = false;
  bool accumulates = false;  ///< more than one micro-batch: weight gradients are added up
  bool operator==(const LayerKey&) const = default;
};

std::size_t hash_value(const LayerKey& key);

inline constexpr std::size_t time_terms = specs::EnumNames<specs::TimeTerm>::names.size();
using TermSeconds = std::array<double, time_terms>;

inline double& at(TermSeconds& terms, specs::TimeTerm term) { return terms[static_cast<std::size_t>(term)]; }
inline double at(const TermSeconds& terms, specs::TimeTerm term) {
  return terms[static_cast<std::size_t>(term)];
}

inline constexpr std::size_t recomputed_module_count =
    specs::EnumNames<specs::RecomputedModule>::names.size();

/// One unit, one micro-batch, one rank. `terms` adds up to forward + backward.
struct UnitCost {
  double forward = 0;
  double backward = 0;
  double weight_gradient = 0;  ///< part of `backward`: the products, casts and sums that nobody waits for
  /// Time of running each module of the unit again, in the order of specs::RecomputedModule's bits.
  std::array<double, recomputed_module_count> recompute{};
  double flops = 0;  ///< forward and backward of one rank
  TermSeconds terms{};
  RankParameters parameters;
};

struct LayerCosts {
  UnitCost attention;
  UnitCost encoder_attention;
  UnitCost feed_forward;  ///< dense
  UnitCost mixture;
  UnitCost embedding;
  UnitCost output;            ///< final norm, logits, loss; once more for each prediction layer
  RankParameters tied_table;  ///< the output layer's copy of a tied table
  RankParameters prediction;  ///< what a prediction layer has beside attention and FFN
};

/// Seconds of repeating the modules of a set.
double recompute_seconds(const UnitCost& unit, std::uint32_t modules);

LayerCosts layer_costs(const CostInputs& inputs, const LayerKey& key);
/// The same without `mixture`, which alone depends on the expert degrees.
LayerCosts layer_costs_without_mixture(const CostInputs& inputs, const LayerKey& key);
UnitCost mixture_cost(const CostInputs& inputs, const LayerKey& key);
/// A key that `mixture_cost` answers alike: the experts see tokens, not how sequences are cut.
LayerKey mixture_key(const LayerKey& key);

/// Ranks between neighbours of an axis: the product of the sizes of the axes inside it.
double axis_stride(const specs::AxisOrder& order, specs::MeshAxis axis, double tensor, double context,
                   double data, double pipeline);

}  // namespace cost_models
