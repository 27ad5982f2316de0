#include "runtime/pipeline/executor.h"

#include <optional>

#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/autograd.h>

#include "runtime/monitor/memory_class.h"

namespace runtime {

namespace {

constexpr int forwards = 0;
constexpr int backwards = 1;

}  // namespace

PipelineExecutor::PipelineExecutor(const specs::Schedule& lowered, const Mesh& mesh,
                                   std::vector<const StageModel*> stages, GradientReducer& reducer,
                                   StreamShape stream)
    : schedule_(lowered), mesh_(mesh), stages_(std::move(stages)), reducer_(reducer), stream_(stream) {}

double PipelineExecutor::run(const PipelineInput& input) {
  input_ = &input;
  loss_ = 0;
  if (gatherer_ != nullptr) gatherer_->begin(passes());
  for (const specs::Action& action :
       schedule_.rank_actions[static_cast<std::size_t>(mesh_.pipeline_rank())]) {
    if (on_action) on_action(action);
    perform(action);
  }
  activation_sent_.wait();
  gradient_sent_.wait();
  TORCH_INTERNAL_ASSERT(passages_.empty() && activations_.empty() && gradients_.empty(),
                        "the schedule left work undone");
  return loss_;
}

void PipelineExecutor::perform(const specs::Action& action) {
  const Key key{action.stage, action.micro_batch};
  switch (action.kind) {
    case specs::ActionKind::forward:
      return forward(key);
    case specs::ActionKind::backward:
      backward(key, false);
      if (synchronises) synchronise();
      return finish(key);
    case specs::ActionKind::input_gradient:
      backward(key, true);
      if (synchronises) synchronise();
      return;
    case specs::ActionKind::weight_gradient:
      weight_gradient(key);
      if (synchronises) synchronise();
      return finish(key);
    case specs::ActionKind::send_activation: {
      Passage& passage = passages_.at(key);
      send(activation_sent_, passage.output, key, action.stage + 1, forwards);
      // The output of a stage is saved by none of its layers: only its place in the graph is needed from
      // here.
      passage.output.set_data(at::empty({0}, passage.output.options()));
      return;
    }
    case specs::ActionKind::receive_activation:
      return receive(activations_, key, action.stage - 1, forwards);
    case specs::ActionKind::send_gradient: {
      const auto gradient = outgoing_gradients_.extract(key);
      return send(gradient_sent_, gradient.mapped(), key, action.stage - 1, backwards);
    }
    case specs::ActionKind::receive_gradient:
      return receive(gradients_, key, action.stage + 1, backwards);
    case specs::ActionKind::reduce_gradients:
      return reducer_.reduce_stage(action.stage);
    case specs::ActionKind::reduce_tied:
      return reducer_.reduce_tied();
    case specs::ActionKind::gather_parameters:
      if (gatherer_ != nullptr) gatherer_->gather_ahead();
      return;
    case specs::ActionKind::release_parameters:
      return;  // each unit when its pass is done
    default:
      TORCH_CHECK(false, "the executor cannot perform the action ", specs::name_of(action.kind));
  }
}

void PipelineExecutor::gather_with(UnitGatherer& gatherer) {
  gatherer_ = &gatherer;
  listeners_.add(gatherer);
}

std::vector<UnitUses> PipelineExecutor::passes() const {
  std::vector<UnitUses> passes;
  for (const specs::Action& action :
       schedule_.rank_actions[static_cast<std::size_t>(mesh_.pipeline_rank())]) {
    const StageModel& stage = *stages_[static_cast<std::size_t>(action.stage)];
    if (action.kind == specs::ActionKind::forward) passes.push_back(stage.forward_uses());
    if (action.kind == specs::ActionKind::backward || action.kind == specs::ActionKind::input_gradient)
      passes.push_back(stage.backward_uses());
  }
  return passes;
}

void PipelineExecutor::synchronise() {
  reducer_.synchronise();
  activation_sent_.wait();
  gradient_sent_.wait();
}

ForwardContext PipelineExecutor::make_context(std::int32_t micro_batch, bool training) {
  const auto index = static_cast<std::size_t>(micro_batch);
  ForwardContext context;
  context.batch = &(*input_->micro_batches)[index];
  context.sequences = context.batch->tokens.size(0);
  context.length = context.batch->tokens.size(1);
  context.step = input_->step;
  context.loss_weight = input_->loss_weights[index];
  context.training = training;
  context.other_masks_on_replay = other_masks_on_replay;
  context.units = listeners_.empty() ? nullptr : &listeners_;
  return context;
}

at::Tensor PipelineExecutor::stream_like(const ForwardContext& context) const {
  const std::int64_t rows = context.tokens() / (stream_.rows_shared ? mesh_.tensor().size() : 1);
  return at::empty({rows, stream_.hidden}, stream_.type);
}

void PipelineExecutor::forward(Key key) {
  const StageModel& stage = *stages_[static_cast<std::size_t>(key.first)];
  Passage& passage = passages_[key];
  passage.context = make_context(key.second, true);
  passage.input = stage.has_embedding() ? stage.embed(passage.context) : take(activations_, key);
  passage.input.requires_grad_();
  passage.output = stage.forward(passage.input, passage.context);
  if (stage.has_output()) {
    loss_ += passage.output.item<double>();
  } else if (on_this_rank(key.first + 1)) {
    activations_[{key.first + 1, key.second}].tensor = passage.output.detach();
  }
}

void PipelineExecutor::backward(Key key, bool defer_weights) {
  const c10::AutoGradMode no_graph(false);
  const MemoryClassScope scope(specs::MemoryClass::workspace);
  const StageModel& stage = *stages_[static_cast<std::size_t>(key.first)];
  Passage& passage = passages_.at(key);
  passage.context.weight_gradients.deferring = defer_weights;
  std::vector<at::Tensor> output_gradient;
  if (!stage.has_output()) output_gradient.push_back(take(gradients_, key));
  torch::autograd::backward({passage.output}, output_gradient);
  passage.output.reset();
  output_gradient.clear();
  at::Tensor input_gradient = passage.input.grad();
  passage.input.reset();
  if (stage.has_embedding()) {
    passage.context.weight_gradients.run([&stage, input_gradient, context = &passage.context] {
      stage.embed_backward(input_gradient, *context);
    });
  } else if (on_this_rank(key.first - 1)) {
    gradients_[{key.first - 1, key.second}].tensor = input_gradient;
  } else {
    outgoing_gradients_[key] = input_gradient;
  }
}

void PipelineExecutor::weight_gradient(Key key) {
  const c10::AutoGradMode no_graph(false);
  const MemoryClassScope scope(specs::MemoryClass::workspace);
  passages_.at(key).context.weight_gradients.flush();
}

void PipelineExecutor::finish(Key key) { passages_.erase(key); }

void PipelineExecutor::receive(std::map<Key, Arrival>& into, Key key, std::int32_t from_stage,
                               int direction) {
  const MemoryClassScope scope(direction == forwards ? specs::MemoryClass::activations
                                                     : specs::MemoryClass::communication_buckets);
  Arrival& arrival = into[key];
  arrival.tensor = stream_like(make_context(key.second, true));
  arrival.work = mesh_.pipeline().receive(arrival.tensor, schedule_.rank_of_stage(from_stage),
                                          tag({from_stage, key.second}, direction));
}

void PipelineExecutor::send(PendingWork& previous, const at::Tensor& tensor, Key key, std::int32_t to_stage,
                            int direction) {
  // One at a time in each direction bounds what is held for sending.
  previous.wait();
  previous = mesh_.pipeline().send(tensor.detach().contiguous(), schedule_.rank_of_stage(to_stage),
                                   tag(key, direction));
}

at::Tensor PipelineExecutor::take(std::map<Key, Arrival>& from, Key key) {
  const auto found = from.extract(key);
  TORCH_INTERNAL_ASSERT(!found.empty(), "stage ", key.first, " micro-batch ", key.second,
                        ": nothing has arrived");
  found.mapped().work.wait();
  return found.mapped().tensor;
}

bool PipelineExecutor::on_this_rank(std::int32_t stage) const {
  return stages_[static_cast<std::size_t>(stage)] != nullptr;
}

int PipelineExecutor::tag(Key key, int direction) const {
  return (key.second * schedule_.stages() + key.first) * 2 + direction;
}

double PipelineExecutor::evaluate(const PipelineInput& input) {
  const c10::AutoGradMode no_gradients(false);
  input_ = &input;
  if (gatherer_ != nullptr) {
    std::vector<UnitUses> passes;
    for (const StageModel* stage : stages_)
      if (stage != nullptr) passes.push_back(stage->forward_uses());
    const std::size_t stages = passes.size();
    for (std::size_t i = stages; i < stages * input.micro_batches->size(); ++i)
      passes.push_back(passes[i % stages]);
    gatherer_->begin(passes);
  }
  double loss = 0;
  for (std::int32_t micro_batch = 0; micro_batch < static_cast<std::int32_t>(input.micro_batches->size());
       ++micro_batch) {
    at::Tensor stream;
    for (std::int32_t index = 0; index < schedule_.stages(); ++index) {
      const bool mine = on_this_rank(index);
      ForwardContext context = make_context(micro_batch, false);
      if (mine) {
        const StageModel& stage = *stages_[static_cast<std::size_t>(index)];
        if (stage.has_embedding()) {
          stream = stage.embed(context);
        } else if (!on_this_rank(index - 1)) {
          stream = stream_like(context);
          mesh_.pipeline()
              .receive(stream, schedule_.rank_of_stage(index - 1), tag({index - 1, micro_batch}, forwards))
              .wait();
        }
        stream = stage.forward(stream, context, on_unit_output);
        if (stage.has_output())
          loss += stream.item<double>();
        else if (!on_this_rank(index + 1))
          mesh_.pipeline()
              .send(stream, schedule_.rank_of_stage(index + 1), tag({index, micro_batch}, forwards))
              .wait();
      }
    }
  }
  return loss;
}

}  // namespace runtime
