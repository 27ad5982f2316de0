#include "specs/language/section_keys.h"

namespace specs {

void visit_keys(KeyVisitor& visitor, SearchSpec& search) {
  const IntegerRange degree{1, 100'000'000};
  visitor.integer_list({"tensor", "tensor-parallel degrees", {}, true}, search.tensor, degree);
  visitor.integer_list({"pipeline", "pipeline ranks", {}, true}, search.pipeline, degree);
  visitor.integer_list({"data", "data-parallel degrees", {}, true}, search.data, degree);
  visitor.integer_list({"context", "context-parallel degrees", {}, true}, search.context, degree);
  visitor.integer_list({"expert", "expert-parallel degrees", {}, true}, search.expert, degree);
  visitor.integer_list({"expert_tensor", "tensor degrees inside an expert", {}, true}, search.expert_tensor,
                       degree);
  visitor.integer_list({"micro_batch", "sequences a replica works on at once", {}, true}, search.micro_batch,
                       degree);
  visitor.integer_list(
      {"zero_stage", "0 nothing sharded, 1 optimizer states, 2 + gradients, 3 + parameters", {}, true},
      search.zero_stage, {0, 3});
  visitor.choice_list({"shard_scope", "ranks that share the shards", {}, true}, search.shard_scope);
  visitor.choice_list({"schedule", "pipeline schedules", {}, true}, search.schedule);
  visitor.integer_list({"virtual_stages", "stages a pipeline rank holds", {}, true}, search.virtual_stages,
                       {1, 100'000});
  visitor.choice_list({"recomputation", "of activations in the backward pass", {}, true},
                      search.recomputation);
  visitor.flag_list({"sequence_parallel", "norms and dropout split along the sequence", {}, true},
                    search.sequence_parallel);
  visitor.choice_list({"offload_optimizer", "where optimizer states may go", {}, true},
                      search.offload_optimizer);
  visitor.choice_list({"offload_parameters", "where parameters may go", {}, true}, search.offload_parameters);
  visitor.choice_list({"offload_activations", "where activations may go", {}, true},
                      search.offload_activations);
  visitor.flag({"uneven_stages", "stages may hold unequal numbers of layers"}, search.uneven_stages);
  visitor.flag({"allow_local_steps", "several updates between synchronisations: changes the mathematics"},
               search.allow_local_steps);
  visitor.integer({"idle_nodes", "nodes that may be left unused"}, search.idle_nodes, {0, 1'000'000});
  visitor.choice({"objective", "what is minimised"}, search.objective);
}

}  // namespace specs
