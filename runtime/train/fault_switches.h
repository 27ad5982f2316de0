// Deliberate defects, one by one the classic ones of this field, so that tests can show that they are
// noticed.
#pragma once

namespace runtime {

struct FaultSwitches {
  bool skip_data_reduction = false;     ///< of the first bucket
  bool skip_partial_reduction = false;  ///< of gradients partial over the tensor axis
  bool skip_tied_reduction = false;     ///< of the table's two copies
  bool count_replicas_twice = false;    ///< in the gradient norm
  bool count_tied_twice = false;        ///< in the gradient norm
  bool mean_of_micro_batches = false;   ///< each micro-batch weighs the same, whatever tokens it counts
  bool local_norm = false;              ///< clipping by each rank's own norm
  bool update_skips_gather = false;     ///< sharded parameters are not gathered after the update
  bool other_masks_on_replay = false;   ///< a recomputed forward pass drops other elements
  bool decides_alone = false;           ///< each rank skips a step by its own numbers
  bool ignores_hysteresis = false;      ///< every overflow shrinks the loss scale
  bool offload_aliases_device = false;  ///< what is offloaded shares the device's memory
  bool padding_in_norm = false;         ///< flat buffers begin with junk, and the norm sums all of them
  bool last_micro_batch_only = false;   ///< a shard keeps the gradients of the last micro-batch alone
  bool mean_over_shards = false;        ///< reduce-scatter averages what is already weighed by tokens
  bool skip_node_reduction = false;     ///< shards are not summed over the nodes that hold the same
  bool stale_gathered_unit = false;     ///< the first unit is not gathered anew after the update
  bool unmasked_padding = false;        ///< padding rows of the output layer take probability
};

}  // namespace runtime
