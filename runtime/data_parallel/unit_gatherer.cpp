#include "runtime/data_parallel/unit_gatherer.h"

#include <algorithm>

#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>

#include "runtime/monitor/memory_class.h"

namespace runtime {

UnitGatherer::UnitGatherer(ParameterRegistry& registry, const Communicator& shard, Options options)
    : registry_(registry), shard_(shard), options_(options) {
  for (std::size_t i = 0; i < registry.buckets().size(); ++i)
    buckets_[registry.buckets()[i].unit.unit].push_back(i);
}

void UnitGatherer::begin(const std::vector<UnitUses>& passes) {
  // What a step that failed has left, or the defect keeps on purpose.
  while (!gathered_.empty() && !options_.faults.stale_gathered_unit) drop(gathered_.begin()->first);
  kept_.clear();
  order_.clear();
  next_ = 0;
  gathers_ = peak_gathered_ = 0;
  for (const UnitUses& pass : passes) {
    const bool forward = !pass.empty() && pass.front().kind == UnitUse::Kind::forward;
    const auto kept = forward ? std::min(static_cast<std::size_t>(options_.kept_units), pass.size()) : 0;
    for (std::size_t i = 0; i < pass.size(); ++i) order_.push_back({pass[i], i + kept >= pass.size()});
  }
  // A unit is kept for a backward pass that comes.
  std::set<std::int64_t> backward_follows;
  for (auto use = order_.rbegin(); use != order_.rend(); ++use) {
    if (use->use.kind == UnitUse::Kind::backward) backward_follows.insert(use->use.unit);
    use->keep = use->keep && backward_follows.contains(use->use.unit);
  }
}

void UnitGatherer::forward_begins(std::int64_t unit) {
  TORCH_INTERNAL_ASSERT(next_ < order_.size(), "no use of unit ", unit, " is left in this step");
  acquire(unit, order_[next_].use.kind == UnitUse::Kind::recomputation ? UnitUse::Kind::recomputation
                                                                       : UnitUse::Kind::forward);
}

void UnitGatherer::forward_ends(std::int64_t unit) { release(unit); }

void UnitGatherer::backward_begins(std::int64_t unit) { acquire(unit, UnitUse::Kind::backward); }

void UnitGatherer::backward_ends(std::int64_t unit) { release(unit); }

void UnitGatherer::acquire(std::int64_t unit, UnitUse::Kind kind) {
  TORCH_INTERNAL_ASSERT(next_ < order_.size() && order_[next_].use == (UnitUse{unit, kind}), "unit ", unit,
                        " is used out of order");
  kept_.erase(unit);
  count();
  gather(unit);
  for (PendingWork& work : gathered_.at(unit)) work.wait();
  gather_ahead();
}

void UnitGatherer::release(std::int64_t unit) {
  const Use& use = order_[next_++];
  const bool last = next_ == order_.size();
  // What is recomputed is used again at once.
  const bool goes_on = use.use.kind == UnitUse::Kind::recomputation && !last &&
                       order_[next_].use == UnitUse{unit, UnitUse::Kind::backward};
  if (use.keep)
    kept_.insert(unit);
  else if (!goes_on && !(options_.faults.stale_gathered_unit && unit == 0))
    drop(unit);
  if (!goes_on) gather_ahead();
}

void UnitGatherer::gather(std::int64_t unit) {
  if (gathered_.contains(unit)) return;
  std::vector<PendingWork>& works = gathered_[unit];
  const MemoryClassScope scope(specs::MemoryClass::gathered_parameters);
  for (const std::size_t index : buckets_.at(unit)) {
    Bucket& bucket = registry_.buckets()[index];
    ParameterRegistry::attach_values(bucket, at::empty({bucket.numel}, bucket.value_shard.options()));
    bucket.values.narrow(0, bucket.shard.begin, bucket.shard.size()).copy_(bucket.value_shard);
    works.push_back(shard_.all_gather_in_place_async(bucket.values));
  }
  ++gathers_;
  count();
}

void UnitGatherer::count() {
  peak_gathered_ = std::max(peak_gathered_, static_cast<std::int64_t>(gathered_.size() - kept_.size()));
}

void UnitGatherer::gather_ahead() {
  // The unit in use, or the next one where none is, and `prefetch` others.
  std::set<std::int64_t> ahead;
  for (std::size_t at = next_; at < order_.size(); ++at) {
    ahead.insert(order_[at].use.unit);
    if (static_cast<std::int64_t>(ahead.size()) > options_.prefetch + 1) return;
    gather(order_[at].use.unit);
  }
}

void UnitGatherer::drop(std::int64_t unit) {
  for (PendingWork& work : gathered_.at(unit)) work.wait();
  gathered_.erase(unit);
  for (const std::size_t index : buckets_.at(unit))
    ParameterRegistry::detach_values(registry_.buckets()[index]);
}

}  // namespace runtime
