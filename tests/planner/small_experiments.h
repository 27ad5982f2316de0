// Small experiments and a software stack that can do everything, for tests of the planner.
#pragma once

#include "specs/language/experiment.h"
#include "specs/language/stack.h"

namespace planner::testing {

inline specs::Experiment small_experiment(std::int64_t devices, std::int64_t layers, std::int64_t heads,
                                          std::int64_t global_batch) {
  specs::Experiment experiment;
  experiment.name = "small";
  experiment.model.layers = layers;
  experiment.model.hidden = 64 * heads;
  experiment.model.attention.heads = heads;
  experiment.model.attention.kv_heads = heads;
  experiment.model.attention.head_dim = 64;
  experiment.model.feed_forward.hidden = 256 * heads;
  experiment.model.vocabulary = 1000;
  specs::ClusterGroup group;
  group.node.devices = devices % 4 == 0 ? 4 : 1;
  group.nodes = devices / group.node.devices;
  experiment.cluster.groups = {group};
  experiment.training.global_batch = global_batch;
  experiment.training.sequence_length = 128;
  return experiment;
}

inline specs::StackSpec able_stack() {
  specs::StackSpec stack;
  stack.name = "able";
  stack.schedules = {specs::ScheduleKind::gpipe, specs::ScheduleKind::one_forward_one_backward,
                     specs::ScheduleKind::interleaved};
  stack.recomputations = {specs::Recomputation::none, specs::Recomputation::selective,
                          specs::Recomputation::full};
  stack.zero_stages = {0, 1, 2, 3};
  stack.zero_stage_with_pipeline = 1;
  stack.zero_with_pipeline_reason = "gradients stay whole between micro-batches";
  stack.shard_scopes = {specs::ShardScope::world, specs::ShardScope::node};
  stack.tensor_parallel = true;
  stack.sequence_parallel = true;
  stack.context_parallel = true;
  stack.uneven_stages = true;
  return stack;
}

}  // namespace planner::testing
