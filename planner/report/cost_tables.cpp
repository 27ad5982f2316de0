#include "planner/report/cost_tables.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "planner/plan/cost_difference.h"
#include "planner/report/layout_words.h"

namespace planner {
namespace {

using specs::CostBreakdown;
using specs::MemoryClass;
using specs::TimeTerm;

constexpr std::int64_t whole_job = -1;

struct TermSum {
  TimeTerm term = TimeTerm::fixed_overhead;
  double exposed_seconds = 0;
  double busy_seconds = 0;
  double flops = 0;
  double bytes = 0;
};

/// Of the whole job; terms without any work are left out, the largest exposed first.
std::vector<TermSum> sums_by_term(const CostBreakdown& cost) {
  std::vector<TermSum> sums;
  for (const auto& [term, name] : specs::EnumNames<TimeTerm>::names) {
    TermSum sum{term};
    for (const specs::TimeEntry& entry : cost.time) {
      if (entry.term != term || entry.pipeline_rank != whole_job) continue;
      sum.exposed_seconds += entry.exposed_seconds;
      sum.busy_seconds += entry.busy_seconds;
      sum.flops += entry.flops;
      sum.bytes += entry.bytes;
    }
    if (sum.exposed_seconds != 0 || sum.busy_seconds != 0) sums.push_back(sum);
  }
  std::stable_sort(sums.begin(), sums.end(),
                   [](const TermSum& a, const TermSum& b) { return a.exposed_seconds > b.exposed_seconds; });
  return sums;
}

std::vector<std::int64_t> pipeline_ranks_of(const CostBreakdown& cost) {
  std::set<std::int64_t> ranks;
  for (const specs::MemoryEntry& entry : cost.memory)
    if (entry.location == specs::MemoryLocation::device) ranks.insert(entry.pipeline_rank);
  return {ranks.begin(), ranks.end()};
}

/// First, fullest and last rank, each once.
std::vector<std::int64_t> telling_ranks(const CostBreakdown& cost) {
  const std::vector<std::int64_t> ranks = pipeline_ranks_of(cost);
  if (ranks.empty()) return {};
  const std::set<std::int64_t> telling{ranks.front(), fullest_pipeline_rank(cost), ranks.back()};
  return {telling.begin(), telling.end()};
}

}  // namespace

TermKind kind_of(TimeTerm term) {
  switch (term) {
    case TimeTerm::attention:
    case TimeTerm::feed_forward:
    case TimeTerm::embedding:
    case TimeTerm::output_layer:
    case TimeTerm::recomputation:
    case TimeTerm::memory_bound:
    case TimeTerm::launch_overhead:
      return TermKind::compute;
    case TimeTerm::tensor_communication:
    case TimeTerm::context_communication:
    case TimeTerm::expert_communication:
    case TimeTerm::pipeline_transfer:
    case TimeTerm::gradient_reduction:
    case TimeTerm::parameter_gather:
    case TimeTerm::offload_transfer:
      return TermKind::communication;
    case TimeTerm::pipeline_bubble:
      return TermKind::bubble;
    default:
      return TermKind::other;
  }
}

Table time_table(const CostBreakdown& cost) {
  Table table{"time", "Time of one step", {}, {}, true};
  table.columns = {{"term", "term"},
                   {"exposed_seconds", "seconds", Quantity::seconds},
                   {"share", "share", Quantity::fraction}};
  for (const TermSum& sum : sums_by_term(cost))
    if (sum.exposed_seconds != 0)
      table.rows.push_back(
          {spoken_name(sum.term), sum.exposed_seconds, sum.exposed_seconds / cost.step_seconds});
  table.rows.push_back({std::string("step"), cost.step_seconds, 1.0});
  return table;
}

Table detailed_time_table(const CostBreakdown& cost) {
  Table table{"time", "Time of one step, by term", {}, {}, true};
  table.columns = {{"term", "term"},
                   {"exposed_seconds", "exposed", Quantity::seconds},
                   {"share", "share", Quantity::fraction},
                   {"busy_seconds", "busy", Quantity::seconds},
                   {"flops_per_rank", "work a rank", Quantity::flops},
                   {"bytes_per_rank", "moved a rank", Quantity::bytes}};
  const auto unless_zero = [](double value) { return value == 0 ? Cell() : Cell(value); };
  for (const TermSum& sum : sums_by_term(cost))
    table.rows.push_back({spoken_name(sum.term), sum.exposed_seconds, sum.exposed_seconds / cost.step_seconds,
                          sum.busy_seconds, unless_zero(sum.flops), unless_zero(sum.bytes)});
  table.rows.push_back({std::string("step"), cost.step_seconds, 1.0, Cell(), Cell(), Cell()});
  return table;
}

Table rank_time_table(const CostBreakdown& cost, const specs::Placement& placement, std::int64_t layers) {
  Table table{"rank_time", "Step of each pipeline rank", {}, {}, false};
  table.columns = {{"pipeline_rank", "rank", Quantity::count},
                   {"compute_seconds", "compute", Quantity::seconds},
                   {"communication_seconds", "communication", Quantity::seconds},
                   {"bubble_seconds", "bubble", Quantity::seconds},
                   {"other_seconds", "other", Quantity::seconds},
                   {"units", "units", Quantity::text}};
  for (const std::int64_t rank : pipeline_ranks_of(cost)) {
    std::array<double, 4> sums{};
    for (const specs::TimeEntry& entry : cost.time)
      if (entry.pipeline_rank == rank)
        sums[static_cast<std::size_t>(kind_of(entry.term))] += entry.exposed_seconds;
    if (std::all_of(sums.begin(), sums.end(), [](double sum) { return sum == 0; })) continue;
    table.rows.push_back(
        {rank, sums[0], sums[1], sums[2], sums[3], rank_unit_words(placement, rank, layers)});
  }
  return table;
}

Table memory_table(const CostBreakdown& cost, std::int64_t usable_device_bytes) {
  Table table{"memory", "Memory of one device", {{"class", "class"}}, {}, true};
  const std::vector<std::int64_t> ranks = telling_ranks(cost);
  const std::int64_t fullest = fullest_pipeline_rank(cost);
  for (const std::int64_t rank : ranks)
    table.columns.push_back(
        {fmt::format("pipeline_rank_{}_bytes", rank),
         fmt::format("rank {}{}", rank, ranks.size() > 1 && rank == fullest ? " (fullest)" : ""),
         Quantity::bytes});
  for (const auto& [memory_class, name] : specs::EnumNames<MemoryClass>::names) {
    std::vector<Cell> row{spoken_name(memory_class)};
    bool any = false;
    for (const std::int64_t rank : ranks) {
      const std::int64_t bytes = device_bytes(cost, rank, memory_class);
      any = any || bytes != 0;
      row.emplace_back(bytes);
    }
    if (any) table.rows.push_back(std::move(row));
  }
  std::vector<Cell> total{
      fmt::format("of {} usable", format_bytes(static_cast<double>(usable_device_bytes)))};
  for (const std::int64_t rank : ranks) total.emplace_back(cost.device_bytes(rank));
  table.rows.push_back(std::move(total));
  return table;
}

Table pipeline_rank_table(const CostBreakdown& cost, const specs::Placement& placement, std::int64_t layers,
                          std::int64_t usable_device_bytes) {
  Table table{"pipeline_ranks", "Pipeline ranks", {}, {}, false};
  table.columns = {{"pipeline_rank", "rank", Quantity::count},
                   {"device_bytes", "memory", Quantity::bytes},
                   {"share_of_usable", "of usable", Quantity::fraction},
                   {"units", "units", Quantity::text}};
  for (const std::int64_t rank : pipeline_ranks_of(cost)) {
    const std::int64_t bytes = cost.device_bytes(rank);
    table.rows.push_back({rank, bytes, static_cast<double>(bytes) / static_cast<double>(usable_device_bytes),
                          rank_unit_words(placement, rank, layers)});
  }
  return table;
}

Table off_device_table(const CostBreakdown& cost) {
  Table table{"off_device_memory", "Memory beside the device, of one rank", {}, {}, false};
  table.columns = {{"class", "class"}, {"location", "where"}, {"bytes", "bytes", Quantity::bytes}};
  const std::int64_t fullest = fullest_pipeline_rank(cost);
  for (const specs::MemoryEntry& entry : cost.memory)
    if (entry.location != specs::MemoryLocation::device && entry.pipeline_rank == fullest && entry.bytes != 0)
      table.rows.push_back(
          {spoken_name(entry.memory_class), std::string(specs::name_of(entry.location)), entry.bytes});
  return table;
}

}  // namespace planner
