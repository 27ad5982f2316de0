#include "specs/schedule/grid.h"

#include <algorithm>
#include <cassert>
#include <vector>

#include <fmt/format.h>

namespace specs {
namespace {

struct Cell {
  std::int64_t start = 0;
  std::int64_t length = 1;
  Action action;
};

/// Start times by running every rank's list as far as it goes, again and again.
std::vector<std::vector<Cell>> place(const Schedule& schedule) {
  const auto stages = static_cast<std::size_t>(schedule.stages());
  const auto micro_batches = static_cast<std::size_t>(schedule.micro_batches);
  constexpr std::int64_t unknown = -1;
  std::vector<std::vector<std::int64_t>> forward_end(stages,
                                                     std::vector<std::int64_t>(micro_batches, unknown));
  std::vector<std::vector<std::int64_t>> gradient_end = forward_end;
  const auto is_gradient = [](const Action& action) {
    return action.kind == ActionKind::backward || action.kind == ActionKind::input_gradient;
  };
  const auto ready = [&](const Action& action) -> std::int64_t {
    const auto stage = static_cast<std::size_t>(action.stage);
    const auto micro_batch = static_cast<std::size_t>(action.micro_batch);
    if (action.kind == ActionKind::forward && stage > 0) return forward_end[stage - 1][micro_batch];
    if (is_gradient(action) && stage + 1 < stages) return gradient_end[stage + 1][micro_batch];
    return 0;
  };
  std::vector<std::vector<Cell>> rows(schedule.rank_actions.size());
  std::vector<std::size_t> next(rows.size());
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t rank = 0; rank < rows.size(); ++rank)
      for (; next[rank] < schedule.rank_actions[rank].size(); ++next[rank], moved = true) {
        const std::vector<Action>& actions = schedule.rank_actions[rank];
        const Action& action = actions[next[rank]];
        if (!is_gradient(action) && action.kind != ActionKind::forward &&
            action.kind != ActionKind::weight_gradient)
          continue;
        std::int64_t start = ready(action);
        // Two that run together start when both can.
        if (next[rank] + 1 < actions.size() && actions[next[rank] + 1].with_previous && start != unknown) {
          const std::int64_t other = ready(actions[next[rank] + 1]);
          start = other == unknown ? unknown : std::max(start, other);
        }
        if (start == unknown) break;
        if (!rows[rank].empty()) start = std::max(start, rows[rank].back().start + rows[rank].back().length);
        const Cell cell{start, action.kind == ActionKind::backward ? 2 : 1, action};
        const auto stage = static_cast<std::size_t>(action.stage);
        const auto micro_batch = static_cast<std::size_t>(action.micro_batch);
        if (action.kind == ActionKind::forward) forward_end[stage][micro_batch] = cell.start + cell.length;
        if (is_gradient(action)) gradient_end[stage][micro_batch] = cell.start + cell.length;
        rows[rank].push_back(cell);
      }
  }
  for (std::size_t rank = 0; rank < rows.size(); ++rank)
    assert(next[rank] == schedule.rank_actions[rank].size() && "compute actions cannot run in this order");
  return rows;
}

}  // namespace

std::string to_grid(const Schedule& schedule) {
  const auto label = [&](const Action& action) {
    const std::string text = fmt::format("{}{}", name_of(action.kind), action.micro_batch);
    return schedule.virtual_stages == 1 ? text : fmt::format("{}:{}", action.stage, text);
  };
  const std::vector<std::vector<Cell>> rows = place(schedule);
  std::size_t width = 1;
  std::int64_t end = 0;
  for (const std::vector<Cell>& row : rows)
    for (const Cell& cell : row) {
      width = std::max(width, label(cell.action).size());
      end = std::max(end, cell.start + cell.length);
    }
  std::string text;
  for (std::size_t rank = 0; rank < rows.size(); ++rank) {
    std::string line = fmt::format("rank {} ", rank);
    std::int64_t at = 0;
    const auto fill = [&](std::int64_t until, char with) {
      for (; at < until; ++at) line += fmt::format(" {:<{}}", std::string(width > 1 ? 2 : 1, with), width);
    };
    for (const Cell& cell : rows[rank]) {
      fill(cell.start, '.');
      line += fmt::format(" {:<{}}", label(cell.action), width);
      ++at;
      fill(cell.start + cell.length, '-');
    }
    fill(end, '.');
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace specs
