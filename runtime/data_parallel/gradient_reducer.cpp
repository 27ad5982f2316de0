#include "runtime/data_parallel/gradient_reducer.h"

#include <algorithm>
#include <memory>
#include <utility>
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

/// A defect: padding that is not zero.
void fill_padding(const Bucket& bucket) {
  const at::Tensor whole = bucket.gradients.clone();
  bucket.gradients.fill_(1);
  for (const ParameterBlock* block : bucket.blocks)
    for (const Parameter& parameter : block->parameters())
      bucket.gradients.narrow(0, parameter.bucket_offset, parameter.numel())
          .copy_(whole.narrow(0, parameter.bucket_offset, parameter.numel()));
}

}  // namespace

GradientReducer::GradientReducer(ParameterRegistry& registry, const Mesh& mesh, Options options)
    : registry_(registry), mesh_(mesh), options_(options) {
  registry_.listen(this);
}

void GradientReducer::begin_step(std::int64_t micro_batches) {
  micro_batches_ = micro_batches;
  travelling_.clear();
  over_holders_.clear();
  whole_buckets_ = peak_whole_buckets_ = 0;
  progress_.assign(registry_.buckets().size(), {});
  for (std::size_t i = 0; i < progress_.size(); ++i) {
    Bucket& bucket = registry_.buckets()[i];
    if (shards_gradients())
      ParameterRegistry::detach_gradients(bucket);  // of a step that was not finished
    else
      bucket.gradients.zero_();
    expect_contributions(i);
  }
}

void GradientReducer::expect_contributions(std::size_t index) {
  const Bucket& bucket = registry_.buckets()[index];
  progress_[index].blocks_left = static_cast<std::int64_t>(bucket.blocks.size());
  for (const ParameterBlock* block : bucket.blocks)
    contributions_left_[block] = micro_batches_a_journey() * block->uses_per_micro_batch();
}

void GradientReducer::open(ParameterBlock& block) {
  // One bucket may travel while this one is filled.
  while (travelling_.size() > 1) arrive();
  Bucket& bucket = registry_.buckets()[static_cast<std::size_t>(block.parameters().front().bucket)];
  const MemoryClassScope scope(specs::MemoryClass::communication_buckets);
  ParameterRegistry::attach_gradients(bucket, at::zeros({bucket.numel}, bucket.gradient_shard.options()));
  if (options_.faults.padding_in_norm) fill_padding(bucket);
  peak_whole_buckets_ = std::max(peak_whole_buckets_, ++whole_buckets_);
}

void GradientReducer::accumulated(ParameterBlock& block) {
  std::int64_t& left = contributions_left_.at(&block);
  TORCH_INTERNAL_ASSERT(left > 0, "one contribution too many to ", block.parameters().front().name());
  if (--left > 0) return;
  const auto bucket = static_cast<std::size_t>(block.parameters().front().bucket);
  if (--progress_[bucket].blocks_left > 0 || block.tied()) return;
  if (options_.overlap || shards_gradients()) launch(bucket);
  if (!options_.overlap) synchronise();
}

void GradientReducer::reduce_tied() {
  for (const Bucket& bucket : registry_.buckets())
    if (bucket.tied && !options_.faults.skip_tied_reduction) mesh_.embedding().all_reduce(bucket.gradients);
}

void GradientReducer::reduce_stage(std::int64_t stage) {
  // Nothing whole is held during the next forward pass.
  if (shards_gradients()) return synchronise();
  for (std::size_t i = 0; i < progress_.size(); ++i)
    if (registry_.buckets()[i].unit.stage == stage && progress_[i].journeys == 0) launch(i);
}

void GradientReducer::finish() {
  synchronise();
  for (std::size_t i = 0; i < progress_.size(); ++i)
    TORCH_INTERNAL_ASSERT(progress_[i].journeys == journeys_a_step(),
                          "the schedule did not reduce all gradients of stage ",
                          registry_.buckets()[i].unit.stage);
  for (PendingWork& work : over_holders_) work.wait();
  over_holders_.clear();
}

void GradientReducer::synchronise() {
  while (!travelling_.empty()) arrive();
}

void GradientReducer::launch(std::size_t index) {
  Bucket& bucket = registry_.buckets()[index];
  Progress& progress = progress_[index];
  TORCH_INTERNAL_ASSERT(progress.blocks_left == 0, "gradients of stage ", bucket.unit.stage,
                        " are reduced before they are complete");
  if (on_launch) on_launch(index);
  sum_partial(bucket);
  Journey journey{index, bucket.gradients, reduce(index)};
  ++progress.journeys;
  if (whole_on_arrival() && handover_) {
    hand_over(index, std::move(journey.work));
    return;
  }
  travelling_.push_back(std::move(journey));
  if (!shards_gradients()) return;
  ParameterRegistry::detach_gradients(bucket);  // what travels keeps its memory
  if (progress.journeys < micro_batches_) expect_contributions(index);
}

PendingWork GradientReducer::reduce(std::size_t index) const {
  const Bucket& bucket = registry_.buckets()[index];
  if (options_.faults.skip_data_reduction && index == 0) return {};
  return options_.sharding.stage == 0
             ? options_.sharding.holders->all_reduce_async(bucket.gradients)
             : options_.sharding.shard->reduce_scatter_in_place_async(bucket.gradients);
}

void GradientReducer::arrive() {
  Journey journey = std::move(travelling_.front());
  travelling_.pop_front();
  journey.work.wait();
  if (options_.sharding.stage == 0) return;
  const Bucket& bucket = registry_.buckets()[journey.bucket];
  const at::Tensor& shard = bucket.gradient_shard;
  const at::Tensor sum = journey.whole.narrow(0, bucket.shard.begin, bucket.shard.size());
  if (options_.faults.mean_over_shards) sum.div_(options_.sharding.shard->size());
  std::int64_t& arrived = progress_[journey.bucket].arrived;
  if (shards_gradients()) {
    --whole_buckets_;
    if (arrived == 0 || options_.faults.last_micro_batch_only)
      shard.copy_(sum);
    else
      shard.add_(sum);
  }
  if (++arrived < journeys_a_step()) return;
  PendingWork work;
  if (!options_.faults.skip_node_reduction) work = options_.sharding.holders->all_reduce_async(shard);
  if (handover_)
    hand_over(journey.bucket, std::move(work));
  else
    over_holders_.push_back(std::move(work));
}

void GradientReducer::hand_over(std::size_t bucket, PendingWork last) {
  handover_(bucket, [work = std::make_shared<PendingWork>(std::move(last))] { work->wait(); });
}

void GradientReducer::sum_partial(const Bucket& bucket) const {
  const Communicator& tensor = mesh_.tensor();
  if (tensor.size() == 1 || options_.faults.skip_partial_reduction) return;
  std::vector<PartialPiece> pieces;
  std::int64_t total = 0;
  for (const ParameterBlock* block : bucket.blocks)
    for (const Parameter& parameter : block->parameters()) {
      const std::int64_t replicas = partial_replicas(parameter.spec, tensor.size());
      if (replicas == 1) continue;
      // What every rank has whole needs no message of its own, unless it is small.
      const auto bytes = static_cast<std::int64_t>(parameter.gradient.nbytes());
      if (replicas == tensor.size() && bytes >= options_.minimum_message_bytes) {
        tensor.all_reduce(parameter.gradient);
        continue;
      }
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
