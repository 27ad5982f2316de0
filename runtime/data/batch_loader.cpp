#include "runtime/data/batch_loader.h"

#include <algorithm>

#include <ATen/ops/empty.h>

namespace runtime {

namespace {

/// In place of a sequence: inputs are token 0, no place is a target.
constexpr std::int64_t no_sequence = -1;
constexpr std::int64_t no_target = -1;

}  // namespace

BatchLoader::BatchLoader(const TrainingData& data, const specs::TrainingSpec& training,
                         const specs::Placement& placement, std::int64_t data_rank)
    : data_(&data),
      sampler_(data.training.sequences(), training.data.shuffle, training.seed),
      slice_(replica_slice(placement, data_rank)),
      micro_batch_(placement.micro_batch),
      global_batch_(training.global_batch),
      evaluation_sequences_(
          std::min(data.held_back.sequences(), training.data.evaluation_batches * training.global_batch)) {}

std::vector<std::int64_t> BatchLoader::samples(std::int64_t consumed, std::int64_t micro_batch) const {
  std::vector<std::int64_t> samples(static_cast<std::size_t>(micro_batch_));
  for (std::int64_t i = 0; i < micro_batch_; ++i)
    samples[static_cast<std::size_t>(i)] = sampler_.sample(consumed + place(micro_batch) + i);
  return samples;
}

MicroBatch BatchLoader::training(std::int64_t consumed, std::int64_t micro_batch) const {
  return load(data_->training, samples(consumed, micro_batch), place(micro_batch));
}

std::int64_t BatchLoader::evaluation_batches() const {
  return (evaluation_sequences_ + global_batch_ - 1) / global_batch_;
}

MicroBatch BatchLoader::evaluation(std::int64_t batch, std::int64_t micro_batch) const {
  const std::int64_t available = data_->held_back.sequences();
  std::vector<std::int64_t> sequences(static_cast<std::size_t>(micro_batch_), no_sequence);
  for (std::int64_t i = 0; i < micro_batch_; ++i) {
    const std::int64_t number = batch * global_batch_ + place(micro_batch) + i;
    if (number < evaluation_sequences_)
      sequences[static_cast<std::size_t>(i)] = number * available / evaluation_sequences_;
  }
  return load(data_->held_back, sequences, place(micro_batch));
}

MicroBatch BatchLoader::load(const SequenceRange& range, const std::vector<std::int64_t>& sequences,
                             std::int64_t first_sequence) const {
  const std::int64_t length = range.length();
  const auto rows = static_cast<std::int64_t>(sequences.size());
  MicroBatch batch{at::empty({rows, length}, at::kLong), at::empty({rows, length}, at::kLong),
                   first_sequence};
  auto* inputs = batch.tokens.mutable_data_ptr<std::int64_t>();
  auto* targets = batch.targets.mutable_data_ptr<std::int64_t>();
  std::vector<std::int64_t> tokens(static_cast<std::size_t>(length) + 1);
  for (const std::int64_t sequence : sequences) {
    if (sequence == no_sequence) {
      inputs = std::fill_n(inputs, length, 0);
      targets = std::fill_n(targets, length, no_target);
      continue;
    }
    range.read(sequence, tokens);
    inputs = std::copy(tokens.begin(), tokens.end() - 1, inputs);
    targets = std::copy(tokens.begin() + 1, tokens.end(), targets);
  }
  return batch;
}

}  // namespace runtime
