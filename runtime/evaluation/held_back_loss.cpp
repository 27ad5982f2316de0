#include "runtime/evaluation/held_back_loss.h"

#include <algorithm>
#include <vector>

namespace runtime {

double held_back_loss(Trainer& trainer, const BatchLoader& loader) {
  const std::int64_t sequences = loader.evaluation_sequences();
  const std::int64_t global_batch = trainer.spec().training.global_batch;
  double sum = 0;
  for (std::int64_t batch = 0; batch < loader.evaluation_batches(); ++batch) {
    std::vector<MicroBatch> micro_batches;
    for (std::int64_t micro_batch = 0; micro_batch < loader.micro_batches(); ++micro_batch)
      micro_batches.push_back(loader.evaluation(batch, micro_batch));
    // A sequence has as many targets as any other; the last batch may have fewer sequences.
    const std::int64_t here = std::min(global_batch, sequences - batch * global_batch);
    sum += trainer.evaluate(micro_batches) * static_cast<double>(here);
  }
  return sequences > 0 ? sum / static_cast<double>(sequences) : 0;
}

}  // namespace runtime
