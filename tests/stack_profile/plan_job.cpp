#include "tests/stack_profile/plan_job.h"

#include <stdexcept>

#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/mesh/mesh.h"
#include "runtime/model/counter_random.h"
#include "runtime/train/executable_plan.h"
#include "runtime/train/trainer.h"
#include "specs/plan/plan_json.h"

namespace runtime {
namespace {

constexpr std::int64_t steps = 3;

std::vector<MicroBatch> batches_of(const specs::Plan& plan, std::int64_t step, std::int64_t data_rank) {
  const specs::Placement& placement = plan.placement;
  const std::int64_t length = plan.inputs.training.sequence_length;
  const auto vocabulary = static_cast<std::uint32_t>(plan.inputs.model.vocabulary);
  std::vector<MicroBatch> batches;
  for (std::int64_t index = 0; index < placement.accumulation; ++index) {
    MicroBatch batch;
    batch.first_sequence = (data_rank * placement.accumulation + index) * placement.micro_batch;
    batch.tokens = at::empty({placement.micro_batch, length}, at::kLong);
    batch.targets = at::empty({placement.micro_batch, length}, at::kLong);
    const std::int64_t first = batch.first_sequence * length;
    for (std::int64_t i = 0; i < batch.tokens.numel(); ++i) {
      const RandomBlock bits =
          philox(5, static_cast<std::uint64_t>(step), static_cast<std::uint64_t>(first + i));
      batch.tokens.data_ptr<std::int64_t>()[i] = bits[0] % vocabulary;
      batch.targets.data_ptr<std::int64_t>()[i] = bits[1] % vocabulary;
    }
    batches.push_back(std::move(batch));
  }
  return batches;
}

std::string run_plan(WorkerContext& context, const std::string& request) {
  const specs::Result<specs::Plan> plan = specs::read_plan_text(request, "plan.json");
  if (!plan) throw std::runtime_error(plan.diagnostics.render());
  const specs::Result<specs::Schedule> schedule = executable_schedule(*plan, "plan.json");
  if (!schedule) throw std::runtime_error(schedule.diagnostics.render());
  const Mesh mesh(plan->placement, context.groups);
  Trainer trainer({plan->inputs.model, plan->inputs.training, plan->placement, *schedule}, mesh);
  std::vector<double> losses;
  for (std::int64_t step = 0; step < steps; ++step)
    losses.push_back(trainer.step(batches_of(*plan, step, mesh.coordinates().data)).loss);
  return nlohmann::json(losses).dump();
}

}  // namespace

WorkerJobs plan_jobs() { return {{"plan", run_plan}}; }

std::vector<double> losses_of_plan(WorkerPool& pool, const std::string& plan_text, std::int64_t ranks) {
  std::vector<double> losses;
  std::int64_t rank = 0;
  for (const WorkerResult& result : pool.run("plan", plan_text, ranks)) {
    if (!result.ok()) throw std::runtime_error(fmt::format("rank {}: {}", rank, result.error));
    const auto own = nlohmann::json::parse(result.value).get<std::vector<double>>();
    if (rank > 0 && own != losses)
      throw std::runtime_error(fmt::format("rank {} reports other losses than rank 0", rank));
    losses = own;
    ++rank;
  }
  return losses;
}

}  // namespace runtime
