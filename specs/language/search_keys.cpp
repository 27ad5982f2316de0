#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "specs/language/section_keys.h"

namespace specs {

namespace {

/// The permutations of "tp-cp-dp-pp", innermost axis first.
std::vector<std::string> axis_orders() {
  std::array<std::string_view, 4> axes{"cp", "dp", "pp", "tp"};
  std::vector<std::string> orders;
  do {
    std::string order;
    for (const std::string_view axis : axes) {
      if (!order.empty()) order += '-';
      order += axis;
    }
    orders.push_back(std::move(order));
  } while (std::next_permutation(axes.begin(), axes.end()));
  return orders;
}

void visit_offload(KeyVisitor& visitor, const Key& key, std::vector<OffloadOption>& options) {
  std::vector<std::string> names;
  for (const OffloadOption& option : options) names.push_back(to_string(option));
  visitor.list_of(key, names, offload_option_names());
  options.clear();
  for (const std::string& name : names)
    if (const auto option = offload_option_from(name)) options.push_back(*option);
}

void visit_module_lists(KeyVisitor& visitor, SearchSpec& search, IntegerRange degree) {
  visitor.integer_list({"attention_tensor", "tensor degrees of the attention; 0: the stage's", {}, true},
                       search.attention_tensor, degree);
  visitor.integer_list({"feed_forward_tensor", "tensor degrees of the FFN; 0: the stage's", {}, true},
                       search.feed_forward_tensor, degree);
  visitor.integer_list({"embedding_tensor", "tensor degrees of the embedding; 0: the stage's", {}, true},
                       search.embedding_tensor, degree);
  visitor.integer_list({"output_tensor", "tensor degrees of the output layer; 0: the stage's", {}, true},
                       search.output_tensor, degree);
  visitor.choice_list({"output_mode", "of the output layer", {}, true}, search.output_mode);
}

}  // namespace

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
  visit_offload(visitor, {"offload_optimizer", "where optimizer states may go", {}, true},
                search.offload_optimizer);
  visit_offload(visitor, {"offload_parameters", "where parameters may go", {}, true},
                search.offload_parameters);
  visit_offload(visitor, {"offload_activations", "where activations may go", {}, true},
                search.offload_activations);
  visit_module_lists(visitor, search, {0, degree.maximum});
  visitor.list_of({"axis_order", "in which consecutive ranks fill the axes, innermost first", {}, true},
                  search.axis_order, axis_orders());
  visitor.integer_list({"recomputed_layers", "layers of a stage that are recomputed", {}, true},
                       search.recomputed_layers, {0, 100'000});
  visitor.integer_list({"micro_batch_group", "interleaved: micro-batches that go round together", {}, true},
                       search.micro_batch_group, {0, degree.maximum});
  visitor.flag_list({"delayed_update", "an offloaded update may end during the next step", {}, true},
                    search.delayed_update);
  visitor.integer_list({"local_steps", "updates between synchronisations; above 1 the mathematics changes"},
                       search.local_steps, {1, 1'000'000});
  visitor.flag({"uneven_stages", "stages may hold unequal numbers of layers"}, search.uneven_stages);
  visitor.flag({"cuts_inside_layers", "a cut may fall between an attention and its FFN"},
               search.cuts_inside_layers);
  visitor.flag({"unequal_stage_meshes", "stages may have meshes of their own"}, search.unequal_stage_meshes);
  visitor.flag({"unequal_shares", "replicas of a mixed cluster may get unequal shares of the batch"},
               search.unequal_shares);
  visitor.integer({"idle_nodes", "nodes that may be left unused"}, search.idle_nodes, {0, 1'000'000});
  visitor.choice({"objective", "what is minimised"}, search.objective);
}

}  // namespace specs
