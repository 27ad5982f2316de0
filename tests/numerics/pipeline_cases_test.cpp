// Mistakes that others have made with pipelines.
#include <vector>

#include "tests/numerics/matrix_fixture.h"

namespace runtime::numerics {
namespace {

class PipelineCases : public MatrixTest {};

/// pytorch/torchtitan#775, NVIDIA/Megatron-LM#750.
TEST_F(PipelineCases, FewerMicroBatchesThanStagesTrainAsOneProcess) {
  std::vector<TrainingCase> cases;
  for (const std::int64_t pipeline : {2, 4, 8})
    for (const specs::ScheduleKind kind :
         {specs::ScheduleKind::gpipe, specs::ScheduleKind::one_forward_one_backward,
          specs::ScheduleKind::interleaved, specs::ScheduleKind::zero_bubble_h1})
      for (const std::int64_t micro_batches : {1, 2, 3, 4, 6, 8}) {
        TrainingCase training;
        training.precision = specs::Precision::fp64;
        training.pipeline = pipeline;
        training.schedule = kind;
        training.virtual_stages = kind == specs::ScheduleKind::interleaved ? 2 : 1;
        training.fixed_layers = pipeline * training.virtual_stages;
        training.micro_batches = micro_batches;
        if (micro_batches <= pipeline && training.stages() <= most_ranks) cases.push_back(training);
      }
  expect_all_equal(cases);
}

}  // namespace
}  // namespace runtime::numerics
