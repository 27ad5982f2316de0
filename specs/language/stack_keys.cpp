#include "specs/language/section_keys.h"

namespace specs {
namespace {

void visit_bucket(KeyVisitor& visitor, StackBucket& bucket) {
  constexpr IntegerRange sizes{0, 1'000'000'000'000};
  visitor.integer({"bytes", "in one collective", {}, true}, bucket.bytes, sizes);
  visitor.integer({"elements", "in one collective", {}, true}, bucket.elements, sizes);
  visitor.integer({"elements_per_replica", "at least as many elements for each replica", {}, true},
                  bucket.elements_per_replica, {0, 1'000'000'000});
  visitor.flag({"layer", "one transformer layer of a rank in one collective", {}, true}, bucket.layer);
  visitor.text({"source", "where the figure stands", {}, true}, bucket.source);
}

}  // namespace

void visit_keys(KeyVisitor& visitor, StackSpec& stack) {
  visitor.choice_list({"precisions", "it trains in"}, stack.precisions);
  visitor.choice_list({"optimizers", "it has"}, stack.optimizers);
  visitor.choice_list({"schedules", "with more than one pipeline rank; empty: no pipeline parallelism"},
                      stack.schedules);
  visitor.choice_list({"recomputations", "it has"}, stack.recomputations);
  visitor.choice({"recomputed_layers", "numbers of layers that stages may recompute"},
                 stack.recomputed_layers);
  visitor.choice_list({"attention", "kernels"}, stack.attention);
  visitor.integer_list({"zero_stages", "it has"}, stack.zero_stages, {0, 3});
  visitor.integer({"zero_stage_with_pipeline", "the highest beside more than one pipeline rank"},
                  stack.zero_stage_with_pipeline, {0, 3});
  visitor.text({"zero_with_pipeline_reason", "why not a higher one"}, stack.zero_with_pipeline_reason);
  visitor.choice_list({"shard_scopes", "it has"}, stack.shard_scopes);
  visitor.text_list(
      {"axis_orders", "in which its ranks may fill the mesh, innermost axis first; the default first"},
      stack.axis_orders);
  visitor.choice_list({"output_modes", "of the output layer over the tensor axis"}, stack.output_modes);
  visitor.flag({"module_tensor_degrees", "attention, FFN, embedding and output layer may each have one"},
               stack.module_tensor_degrees);
  visitor.choice_list({"optimizer_offload", "devices"}, stack.optimizer_offload);
  visitor.choice_list({"parameter_offload", "devices"}, stack.parameter_offload);
  visitor.choice_list({"activation_offload", "devices"}, stack.activation_offload);
  visitor.flag({"activation_offload_with_pipeline", "beside more than one pipeline rank"},
               stack.activation_offload_with_pipeline);
  visitor.flag({"tensor_parallel", "it has"}, stack.tensor_parallel);
  visitor.flag({"sequence_parallel", "it has"}, stack.sequence_parallel);
  visitor.flag({"context_parallel", "it has"}, stack.context_parallel);
  visitor.flag({"expert_parallel", "it has"}, stack.expert_parallel);
  visitor.flag({"expert_tensor_parallel", "it has"}, stack.expert_tensor_parallel);
  visitor.flag({"uneven_stages", "stages may hold unequal numbers of layers"}, stack.uneven_stages);
  visitor.flag({"cuts_inside_layers", "a cut may fall between an attention and its FFN"},
               stack.cuts_inside_layers);
  visitor.flag({"micro_batch_groups", "interleaved: more micro-batches a round than pipeline ranks"},
               stack.micro_batch_groups);
  visitor.flag({"delayed_update", "an offloaded update may end during the next step"}, stack.delayed_update);
  visitor.flag({"local_steps", "it has"}, stack.local_steps);
  visitor.flag({"cpu_devices", "it runs on CPUs"}, stack.cpu_devices);
  visitor.flag({"overlaps_gradient_reduction", "with the backward pass"}, stack.overlaps_gradient_reduction);
  visitor.flag({"overlaps_parameter_gather", "with the forward pass"}, stack.overlaps_parameter_gather);
  visitor.flag({"overlaps_tensor_communication", "with matrix products"},
               stack.overlaps_tensor_communication);
  visitor.choice({"gradient_precision", "of the accumulated gradient of a 16-bit run"},
                 stack.gradient_precision);
  visitor.table({"gradient_bucket", "gradients reduced in one collective; empty: all of them"},
                [&stack](KeyVisitor& keys) { visit_bucket(keys, stack.gradient_bucket); });
  visitor.table({"gather_bucket", "updated parameters gathered in one collective; empty: all of them"},
                [&stack](KeyVisitor& keys) { visit_bucket(keys, stack.gather_bucket); });
}

}  // namespace specs
