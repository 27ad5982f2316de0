// The micro-batches of one rank, as tensors.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/data/sampler.h"
#include "runtime/data/training_data.h"
#include "runtime/model/forward_context.h"
#include "specs/language/training.h"
#include "specs/plan/placement.h"

namespace runtime {

class BatchLoader {
 public:
  /// `data_rank` is the rank's coordinate on the data axis: the ranks of one replica read the same.
  BatchLoader(const TrainingData& data, const specs::TrainingSpec& training,
              const specs::Placement& placement, std::int64_t data_rank);

  /// Of this rank in each global batch.
  std::int64_t micro_batches() const { return slice_.micro_batches; }

  /// The samples in micro-batch `micro_batch` of the global batch that follows `consumed` samples.
  std::vector<std::int64_t> samples(std::int64_t consumed, std::int64_t micro_batch) const;
  MicroBatch training(std::int64_t consumed, std::int64_t micro_batch) const;

  /// Global batches of held-back text: as many as asked for, or as there is text for.
  std::int64_t evaluation_batches() const;
  /// Held-back sequences in those, spread evenly over the held-back text. Where they do not fill the last
  /// batch, its other places have no targets.
  std::int64_t evaluation_sequences() const { return evaluation_sequences_; }
  MicroBatch evaluation(std::int64_t batch, std::int64_t micro_batch) const;

 private:
  /// Place in the global batch of a micro-batch's first sequence.
  std::int64_t place(std::int64_t micro_batch) const {
    return slice_.first_place + micro_batch * micro_batch_;
  }
  MicroBatch load(const SequenceRange& range, const std::vector<std::int64_t>& sequences,
                  std::int64_t first_sequence) const;

  const TrainingData* data_;
  Sampler sampler_;
  ReplicaSlice slice_;
  std::int64_t micro_batch_;
  std::int64_t global_batch_;
  std::int64_t evaluation_sequences_;
};

}  // namespace runtime
