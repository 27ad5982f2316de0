#include "runtime/data_parallel/gradient_reducer.h"

#include <memory>
#include <variant>

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

#include "runtime/monitor/memory_class.h"

namespace runtime {

namespace {

/// Ranks of the tensor axis that hold the same piece of the parameter and each a part of its gradient.
std::int64_t partial_replicas(const ParameterSpec& spec, std::int64_t tensor_ranks) {
  if (const auto* sharded = std::get_if<Sharded>(&spec.contract)) return sharded->replicas;
  for (const specs::MeshAxis axis : std::get<Replicated>(spec.contract).partial_over)
    if (axis == specs::MeshAxis::tensor) return tensor_ranks;
  return 1;
}

/// One piece of the message that sums partial gradients: `slots` places, of which this rank fills one.
struct PartialPiece {
  at::Tensor gradient;  ///< flat
  std::int64_t offset = 0;
  std::int64_t slots = 1;
  std::int64_t slot = 0;
};

}  // namespace

BucketRange shard_of(const Bucket& bucket, std::int64_t rank, std::int64_t size) {
  const std::int64_t length = bucket.numel / size;
  return {rank * length, (rank + 1) * length};
}

GradientReducer::GradientReducer(ParameterRegistry& registry, const Mesh& mesh, Options options)
    : registry_(registry), mesh_(mesh), options_(options) {
  registry_.listen(this);
}

void GradientReducer::begin_step(std::int64_t micro_batches) {
  registry_.zero_gradients();
  const std::size_t buckets = registry_.buckets().size();
  blocks_left_.assign(buckets, 0);
  started_.assign(buckets, false);
  pending_.clear();
  for (std::size_t i = 0; i < buckets; ++i) {
    const Bucket& bucket = registry_.buckets()[i];
    blocks_left_[i] = static_cast<std::int64_t>(bucket.blocks.size());
    for (const ParameterBlock* block : bucket.blocks)
      contributions_left_[block] = micro_batches * block->uses_per_micro_batch();
  }
}

void GradientReducer::accumulated(ParameterBlock& block) {
  std::int64_t& left = contributions_left_.at(&block);
  TORCH_INTERNAL_ASSERT(left > 0, "one contribution too many to ", block.parameters().front().name());
  if (--left > 0) return;
  const auto bucket = static_cast<std::size_t>(block.parameters().front().bucket);
  if (--blocks_left_[bucket] == 0 && options_.overlap && !block.tied()) start(bucket);
}

void GradientReducer::reduce_tied() {
  for (const Bucket& bucket : registry_.buckets())
    if (bucket.tied && !options_.faults.skip_tied_reduction) mesh_.embedding().all_reduce(bucket.gradients);
}

void GradientReducer::reduce_stage(std::int64_t stage) {
  for (std::size_t i = 0; i < started_.size(); ++i)
    if (registry_.buckets()[i].stage == stage && !started_[i]) start(i);
}

void GradientReducer::finish() {
  for (std::size_t i = 0; i < started_.size(); ++i)
    TORCH_INTERNAL_ASSERT(started_[i], "the schedule never reduced the gradients of stage ",
                          registry_.buckets()[i].stage);
  for (PendingWork& work : pending_) work.wait();
  pending_.clear();
}

void GradientReducer::start(std::size_t index) {
  const Bucket& bucket = registry_.buckets()[index];
  TORCH_INTERNAL_ASSERT(blocks_left_[index] == 0, "gradients of stage ", bucket.stage,
                        " are reduced before they are complete");
  started_[index] = true;
  sum_partial(bucket);
  PendingWork reduction = reduce_over_data(index);
  if (handover_)
    handover_(index, [work = std::make_shared<PendingWork>(std::move(reduction))] { work->wait(); });
  else
    pending_.push_back(std::move(reduction));
}

PendingWork GradientReducer::reduce_over_data(std::size_t index) {
  if (options_.faults.skip_data_reduction && index == 0) return {};
  const Bucket& bucket = registry_.buckets()[index];
  const Communicator& replicas = mesh_.gradient();
  if (!options_.scatter) return replicas.all_reduce_async(bucket.gradients);
  const BucketRange shard = shard_of(bucket, replicas.rank(), replicas.size());
  return replicas.reduce_scatter_into_async(bucket.gradients.narrow(0, shard.begin, shard.size()),
                                            bucket.gradients);
}

void GradientReducer::sum_partial(const Bucket& bucket) {
  const Communicator& tensor = mesh_.tensor();
  if (tensor.size() == 1 || options_.faults.skip_partial_reduction) return;
  std::vector<PartialPiece> pieces;
  std::int64_t total = 0;
  for (const ParameterBlock* block : bucket.blocks)
    for (const Parameter& parameter : block->parameters()) {
      const std::int64_t replicas = partial_replicas(parameter.spec, tensor.size());
      if (replicas == 1) continue;
      pieces.push_back(
          {parameter.gradient.view({-1}), total, tensor.size() / replicas, tensor.rank() / replicas});
      total += pieces.back().slots * parameter.numel();
    }
  if (pieces.empty()) return;
  const MemoryClassScope scope(specs::MemoryClass::communication_buckets);
  const at::Tensor message = at::zeros({total}, bucket.gradients.options());
  const auto place = [&](const PartialPiece& piece) {
    const std::int64_t numel = piece.gradient.numel();
    return message.narrow(0, piece.offset + piece.slot * numel, numel);
  };
  for (const PartialPiece& piece : pieces) place(piece).copy_(piece.gradient);
  tensor.all_reduce(message);
  for (const PartialPiece& piece : pieces) piece.gradient.copy_(place(piece));
}

}  // namespace runtime
