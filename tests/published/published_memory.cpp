#include "tests/published/published_memory.h"

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>

#include "cost_models/constants.h"
#include "cost_models/memory.h"
#include "tests/published/published_run.h"

namespace published {
namespace {

constexpr double mib = 1024.0 * 1024.0;
constexpr double gib = 1024.0 * mib;

double in_the_sense_of(const std::string& kind, const cost_models::RankMemory& memory) {
  if (kind == "peak_allocated") return memory.allocated();
  if (kind == "peak_reserved") return memory.reserved();
  return memory.total();
}

void price(const PublishedRun& run, MemoryPoint& point) {
  const cost_models::CostInputs inputs =
      cost_models::make_cost_inputs(run.experiment, cost_models::stack_profile(run.experiment.training),
                                    cost_models::ConstantTable::built_in());
  const cost_models::LayerCosts costs =
      cost_models::layer_costs(inputs, cost_models::layer_key(run.placement));
  const cost_models::JobShape job = cost_models::job_shape(inputs, run.placement);
  const cost_models::ShardKey shards = cost_models::shard_key(run.placement);
  const bool bare = inputs.profile.options.layers_only;
  const cost_models::ModuleSplit split =
      cost_models::module_split(inputs.model, run.placement.modules, run.placement.tensor);
  for (const cost_models::RankRun& each : run.cut.ranks)
    for (std::int64_t rank = each.first_rank; rank < each.first_rank + each.ranks; ++rank) {
      cost_models::UnitCounts counts = each.counts;
      if (bare) counts.embedding = counts.output = false;
      const cost_models::RankMemory memory = cost_models::rank_memory(
          inputs,
          cost_models::rank_load(job, costs, counts, shards, rank, split, inputs.model.tied_embeddings));
      point.predicted_gib = std::max(point.predicted_gib, in_the_sense_of(point.kind, memory) / gib);
      point.total_gib = std::max(point.total_gib, memory.total() / gib);
      point.allocated_mib_by_stage.push_back(memory.allocated() / mib);
    }
  const auto& device = run.experiment.cluster.groups.front().node.device;
  point.usable_gib = static_cast<double>(device.memory_bytes) / gib;
}

bool misses_only(std::string_view missing, bool out_of_memory) {
  if (missing.empty() || missing == "step_time_s") return true;
  return out_of_memory && missing.starts_with("step_time_s; OOM");
}

}  // namespace

MemorySet read_memory_points(const std::filesystem::path& path) {
  Table table;
  read_table(path, table);
  need_run_columns(path, table);
  need_columns(path, table, {"memory_kind", "memory_gib_per_gpu", "missing"});
  MemorySet set;
  for (const Row& row : table.rows) {
    const std::string_view confidence = row.text("confidence");
    if (confidence != "a" && confidence != "b") continue;
    MemoryPoint point;
    point.id = row.text("id");
    point.family = row.text("family");
    point.kind = row.text("memory_kind");
    point.measured_gib = row.number("memory_gib_per_gpu");
    if (!misses_only(row.text("missing"), point.out_of_memory())) continue;
    if (!point.out_of_memory() && !row.has("memory_gib_per_gpu")) continue;
    PublishedRun run;
    std::string reason = convert(row, run);
    if (reason.empty() && !point.out_of_memory() && point.measured_gib <= 0) reason = "no memory_gib_per_gpu";
    if (!reason.empty()) {
      set.unpriced.emplace_back(point.id, reason);
      continue;
    }
    point.identity = run.identity;
    // Accumulation and the batch it makes change nothing.
    for (const char* column : {"accum", "global_batch"}) {
      const std::string cell = std::string(row.text(column)) + "|";
      const auto found = point.identity.rfind("|" + cell);
      if (found != std::string::npos) point.identity.erase(found + 1, cell.size());
    }
    price(run, point);
    set.points.push_back(std::move(point));
  }
  return set;
}

std::vector<RankError> rank_errors(const std::filesystem::path& by_rank, const MemorySet& set) {
  std::map<std::string, const MemoryPoint*> chosen;
  std::set<std::string> identities;
  for (const MemoryPoint& point : set.points)
    if (identities.insert(point.identity).second) chosen[point.id] = &point;
  Table table;
  read_table(by_rank, table);
  need_columns(by_rank, table, {"id", "rank", "max_allocated_mib"});
  std::map<std::string, int> ranks;
  for (const Row& row : table.rows) ++ranks[std::string(row.text("id"))];
  std::vector<RankError> errors;
  for (const Row& row : table.rows) {
    const std::string id(row.text("id"));
    const auto found = chosen.find(id);
    if (found == chosen.end()) continue;
    const auto& stages = found->second->allocated_mib_by_stage;
    if (std::string wrong = wrong_number(row, {"rank", "max_allocated_mib"}); !wrong.empty())
      throw std::runtime_error(by_rank.string() + ": " + wrong);
    const int rank = static_cast<int>(row.integer("rank"));
    if (rank < 0 || rank >= ranks[id] || row.number("max_allocated_mib") <= 0)
      throw std::runtime_error(by_rank.string() + ": record " + std::to_string(row.record()) + ": rank " +
                               std::to_string(rank) + " of " + std::to_string(ranks[id]) + " with no memory");
    const auto stage = static_cast<std::size_t>(rank) * stages.size() / static_cast<std::size_t>(ranks[id]);
    errors.push_back({id, rank, stages.at(stage) / row.number("max_allocated_mib", 1) - 1});
  }
  return errors;
}

}  // namespace published
