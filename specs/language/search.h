// What may vary: each dimension of the space restricted to a list, and what is to be minimised.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "specs/language/vocabulary.h"
#include "specs/schedule/schedule.h"

namespace specs {

/// Where a part may lie: the device, with any share of it or with so many eighths.
struct OffloadOption {
  OffloadDevice device = OffloadDevice::none;
  std::int64_t eighths = 0;  ///< 0: any share

  OffloadOption() = default;
  OffloadOption(OffloadDevice where, std::int64_t share = 0) : device(where), eighths(share) {}
  bool operator==(const OffloadOption&) const = default;
};

/// "none", "cpu" with any share, "cpu/4" with four eighths.
std::string to_string(const OffloadOption& option);
std::optional<OffloadOption> offload_option_from(std::string_view text);
/// All that can be written.
std::vector<std::string> offload_option_names();

/// True where one of the options, or none at all being named, lets `eighths` of the part lie on the device.
bool allows(const std::vector<OffloadOption>& options, OffloadDevice device, std::int64_t eighths);

/// An empty list leaves the dimension free.
struct SearchSpec {
  std::vector<std::int64_t> tensor;
  std::vector<std::int64_t> pipeline;
  std::vector<std::int64_t> data;
  std::vector<std::int64_t> context;
  std::vector<std::int64_t> expert;
  std::vector<std::int64_t> expert_tensor;
  std::vector<std::int64_t> micro_batch;
  std::vector<std::int64_t> zero_stage;
  std::vector<ShardScope> shard_scope;
  std::vector<ScheduleKind> schedule;
  std::vector<std::int64_t> virtual_stages;
  std::vector<Recomputation> recomputation;
  std::vector<bool> sequence_parallel;
  std::vector<OffloadOption> offload_optimizer;
  std::vector<OffloadOption> offload_parameters;
  std::vector<OffloadOption> offload_activations;
  std::vector<std::int64_t> attention_tensor;
  std::vector<std::int64_t> feed_forward_tensor;
  std::vector<std::int64_t> embedding_tensor;
  std::vector<std::int64_t> output_tensor;
  std::vector<OutputLayerMode> output_mode;
  std::vector<std::string> axis_order;          ///< "tp-cp-dp-pp" and its permutations
  std::vector<std::int64_t> recomputed_layers;  ///< per stage
  std::vector<std::int64_t> micro_batch_group;
  std::vector<bool> delayed_update;
  std::vector<std::int64_t> local_steps{1};  ///< updates between synchronisations
  bool uneven_stages = true;
  bool cuts_inside_layers = true;  ///< between an attention and its FFN
  bool unequal_stage_meshes = false;
  bool unequal_shares = true;  ///< mixed clusters only
  std::int64_t idle_nodes = 0;
  Objective objective = Objective::step_time;
  bool operator==(const SearchSpec&) const = default;
};

/// One swept key and its values, as TOML text of each value.
struct SweepAxis {
  std::string path;
  std::vector<std::string> values;
  bool operator==(const SweepAxis&) const = default;
};

}  // namespace specs
