#include "specs/schedule/text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>
#include <map>
#include <optional>

#include <fmt/format.h>

namespace specs {
namespace {

// ---- printing -------------------------------------------------------------------------------------------

/// What an item looks like, with its first micro-batch taken as 0: a token, or a repeated group of items.
/// Equal looks have equal numbers in a `Looks` table.
struct Look {
  ActionKind kind = ActionKind::forward;
  std::int32_t stage = 0;
  bool whole_stage = false;  ///< a token without micro-batch
  bool with_previous = false;
  std::vector<std::pair<std::int32_t, std::int32_t>> inner;  ///< (look, offset), empty for a token
  std::int32_t count = 1;
  std::int32_t step = 1;
  auto operator<=>(const Look&) const = default;
};

struct Looks {
  std::vector<Look> all;
  std::map<Look, std::int32_t> numbers;

  std::int32_t number_of(const Look& look) {
    const auto [entry, added] = numbers.try_emplace(look, static_cast<std::int32_t>(all.size()));
    if (added) all.push_back(look);
    return entry->second;
  }
};

struct Item {
  std::int32_t look = 0;
  std::int32_t base = 0;  ///< its first micro-batch
};

/// Folding a stretch of `period` items that is repeated `count` times.
struct Fold {
  std::size_t period = 1;
  std::size_t count = 1;
  std::int32_t step = 1;
};

/// Longest periods looked for, one after the other: pairs first (one forward, one backward), then what is
/// made of them. A rank of an interleaved schedule repeats after two runs of pairs per chunk.
constexpr std::array<std::size_t, 2> longest_periods{2, 64};

/// For each start, how often the `period` items there repeat, each round moved by the same step.
std::vector<Fold> repetitions(const std::vector<Item>& items, std::size_t period) {
  std::vector<Fold> folds(items.size(), Fold{.period = period});
  std::size_t agreeing = 0;
  for (std::size_t index = items.size() - std::min(period, items.size()); index-- > 0;) {
    const Item& here = items[index];
    const Item& there = items[index + period];
    const std::int32_t step = there.base - here.base;
    if (here.look != there.look || step < 0)
      agreeing = 0;
    else
      agreeing = agreeing > 0 && folds[index + 1].step == step ? agreeing + 1 : 1;
    folds[index].step = step;
    folds[index].count = agreeing / period + 1;
  }
  return folds;
}

/// The cheapest way to write the items from here on: fewest items, then most of them in groups.
struct Cost {
  std::size_t items = 0;
  std::size_t ungrouped = 0;
  auto operator<=>(const Cost&) const = default;
};

std::vector<Item> fold_once(const std::vector<Item>& items, std::size_t longest, Looks& looks) {
  longest = std::min(longest, items.size() / 2);
  std::vector<std::vector<Fold>> by_period;
  for (std::size_t period = 1; period <= longest; ++period) by_period.push_back(repetitions(items, period));
  std::vector<Cost> cost(items.size() + 1);
  std::vector<Fold> choice(items.size());
  for (std::size_t index = items.size(); index-- > 0;) {
    cost[index] = {cost[index + 1].items + 1, cost[index + 1].ungrouped + 1};
    for (std::size_t period = 1; period <= longest; ++period) {
      const Fold& most = by_period[period - 1][index];
      for (std::size_t count = most.count; count >= 2 && count + 1 >= most.count; --count) {
        const Cost& rest = cost[index + period * count];
        const Cost candidate{rest.items + (period == 1 ? 1 : period + 1),
                             rest.ungrouped + (period == 1 ? count : 0)};
        if (candidate >= cost[index]) continue;
        cost[index] = candidate;
        choice[index] = {period, count, most.step};
      }
    }
  }
  std::vector<Item> folded;
  for (std::size_t index = 0; index < items.size();) {
    const Fold& fold = choice[index];
    if (fold.count == 1) {
      folded.push_back(items[index++]);
      continue;
    }
    Look group{.inner = {}, .count = static_cast<std::int32_t>(fold.count), .step = fold.step};
    const std::int32_t base = items[index].base;
    for (std::size_t inner = 0; inner < fold.period; ++inner)
      group.inner.emplace_back(items[index + inner].look, items[index + inner].base - base);
    folded.push_back({looks.number_of(group), base});
    index += fold.period * fold.count;
  }
  return folded;
}

/// `unsaid_stage` is the only one of the rank, which goes without saying.
std::string print(const Looks& looks, std::int32_t number, std::int32_t base,
                  std::optional<std::int32_t> unsaid_stage) {
  const Look& look = looks.all[static_cast<std::size_t>(number)];
  if (look.inner.empty()) {
    const std::string stage = look.stage == unsaid_stage ? std::string() : fmt::format("{}:", look.stage);
    const std::string micro_batch = look.whole_stage ? std::string() : fmt::format("{}", base);
    return (look.with_previous ? "&" : "") + stage + std::string(name_of(look.kind)) + micro_batch;
  }
  const Look& first = looks.all[static_cast<std::size_t>(look.inner.front().first)];
  if (look.inner.size() == 1 && first.inner.empty() && !first.whole_stage && !first.with_previous &&
      look.step == 1)
    return fmt::format("{}-{}", print(looks, look.inner.front().first, base, unsaid_stage),
                       base + look.count - 1);
  std::string text = "(";
  for (const auto& [inner, offset] : look.inner) {
    if (text.size() > 1) text += ' ';
    text += print(looks, inner, base + offset, unsaid_stage);
  }
  text += fmt::format(")x{}", look.count);
  if (look.step != 1) text += fmt::format("+{}", look.step);
  return text;
}

std::string line_of(const std::vector<Action>& actions, std::optional<std::int32_t> unsaid_stage) {
  Looks looks;
  std::vector<Item> items;
  std::int32_t last = 0;
  for (const Action& action : actions) {
    const bool whole_stage = action.micro_batch < 0;
    // An action on a whole stage has no micro-batch to move; it follows its neighbours, so that it may stand
    // in a group.
    if (!whole_stage) last = action.micro_batch;
    items.push_back({looks.number_of({.kind = action.kind,
                                      .stage = action.stage,
                                      .whole_stage = whole_stage,
                                      .with_previous = action.with_previous,
                                      .inner = {}}),
                     last});
  }
  for (std::size_t longest : longest_periods)
    for (std::size_t before = 0; before != items.size();) {
      before = items.size();
      items = fold_once(items, longest, looks);
    }
  std::string line;
  for (const Item& item : items) {
    if (!line.empty()) line += ' ';
    line += print(looks, item.look, item.base, unsaid_stage);
  }
  return line;
}

// ---- parsing --------------------------------------------------------------------------------------------

/// Actions one rank may have: more than any schedule needs, less than a mistyped count could ask for.
std::size_t most_actions(const Schedule& shape) {
  const std::size_t pairs =
      static_cast<std::size_t>(shape.micro_batches) * static_cast<std::size_t>(shape.virtual_stages);
  return 16 * pairs + 16 * static_cast<std::size_t>(shape.virtual_stages) + 64;
}

class LineParser {
 public:
  LineParser(const Schedule& shape, std::int32_t rank, const std::string& line, SourcePosition start,
             Diagnostics& diagnostics)
      : shape_(shape), rank_(rank), line_(line), start_(std::move(start)), diagnostics_(diagnostics) {}

  std::vector<Action> run() {
    std::vector<Action> actions;
    items(actions, 0);
    if (!failed_ && at_ < line_.size()) fail(at_, "there is no group to close", "remove the )");
    return actions;
  }

 private:
  static constexpr int deepest = 16;

  void fail(std::size_t offset, std::string message, std::string remedy = {}) {
    if (failed_) return;
    failed_ = true;
    SourcePosition position = start_;
    if (position.column > 0) position.column += static_cast<int>(offset);
    std::size_t end = offset;
    while (end < line_.size() && line_[end] != ' ' && line_[end] != ')') ++end;
    diagnostics_.add({.position = std::move(position),
                      .message = fmt::format("pipeline rank {}: {}", rank_, message),
                      .expected = {},
                      .seen = line_.substr(offset, std::max<std::size_t>(end - offset, 1)),
                      .remedy = std::move(remedy),
                      .source_line = {}});
  }

  bool more() const { return !failed_ && at_ < line_.size(); }
  bool next_is(char expected) const { return at_ < line_.size() && line_[at_] == expected; }
  bool digit() const {
    return at_ < line_.size() && std::isdigit(static_cast<unsigned char>(line_[at_])) != 0;
  }

  void items(std::vector<Action>& into, int depth) {
    while (more()) {
      if (next_is(' ')) {
        ++at_;
      } else if (next_is(')')) {
        return;
      } else if (next_is('(')) {
        group(into, depth + 1);
      } else {
        token(into);
      }
    }
  }

  void group(std::vector<Action>& into, int depth) {
    const std::size_t open = at_++;
    if (depth > deepest) return fail(open, fmt::format("groups are nested deeper than {}", deepest));
    std::vector<Action> inner;
    items(inner, depth);
    if (failed_) return;
    if (!next_is(')')) return fail(open, "the group is not closed", "add )xN, N rounds");
    ++at_;
    if (!next_is('x')) return fail(open, "a group needs its number of rounds", "write it as (…)xN");
    const std::size_t count_at = ++at_;
    const std::int64_t count = number("the number of rounds");
    std::int64_t step = 1;
    if (next_is('+')) {
      ++at_;
      step = number("the step of the micro-batch");
    }
    if (failed_) return;
    if (inner.empty()) return fail(open, "the group is empty");
    if (count < 1) return fail(count_at, "a group has at least one round");
    if (count > static_cast<std::int64_t>(most_actions(shape_))) return too_many(open);
    for (std::int64_t round = 0; round < count && !failed_; ++round)
      for (const Action& action : inner) push(into, action, round * step, open);
  }

  void push(std::vector<Action>& into, Action action, std::int64_t move, std::size_t offset) {
    if (failed_) return;
    if (into.size() >= most_actions(shape_)) return too_many(offset);
    if (action.micro_batch >= 0) {
      const std::int64_t moved = action.micro_batch + move;
      if (moved >= shape_.micro_batches)
        return fail(offset,
                    fmt::format("reaches micro-batch {}, the last is {}", moved, shape_.micro_batches - 1));
      action.micro_batch = static_cast<std::int32_t>(moved);
    }
    into.push_back(action);
  }

  void too_many(std::size_t offset) {
    fail(offset, fmt::format("more than {} actions for {} micro-batches of {} stages", most_actions(shape_),
                             shape_.micro_batches, shape_.virtual_stages));
  }

  std::int64_t number(std::string_view what) {
    if (!digit()) {
      fail(at_, fmt::format("expected {}", what));
      return 0;
    }
    const std::size_t begin = at_;
    std::int64_t value = 0;
    while (digit()) {
      value = value * 10 + (line_[at_] - '0');
      if (value > std::numeric_limits<std::int32_t>::max()) {
        fail(begin, fmt::format("{} is too large", what));
        return 0;
      }
      ++at_;
    }
    return value;
  }

  void token(std::vector<Action>& into) {
    const std::size_t begin = at_;
    Action action;
    if (next_is('&')) {
      action.with_previous = true;
      ++at_;
    }
    if (!stage_of(action)) return;
    const std::size_t letters_at = at_;
    while (at_ < line_.size() && std::isupper(static_cast<unsigned char>(line_[at_])) != 0) ++at_;
    const auto kind = from_name<ActionKind>(std::string_view(line_).substr(letters_at, at_ - letters_at));
    if (!kind)
      return fail(letters_at, "not an action",
                  fmt::format("one of {}", fmt::join(all_names<ActionKind>(), " ")));
    action.kind = *kind;
    std::int64_t last = -1;
    if (digit()) {
      action.micro_batch = static_cast<std::int32_t>(number("a micro-batch"));
      last = action.micro_batch;
      if (next_is('-')) {
        ++at_;
        last = number("the last micro-batch");
        if (!failed_ && last < action.micro_batch)
          return fail(begin,
                      fmt::format("the range ends at {}, before its start {}", last, action.micro_batch));
      }
    }
    if (!failed_ && at_ < line_.size() && line_[at_] != ' ' && line_[at_] != ')' && line_[at_] != '(')
      return fail(at_, "expected a space");
    push(into, action, 0, begin);
    for (std::int64_t move = 1; move <= last - action.micro_batch && !failed_; ++move)
      push(into, action, move, begin);
  }

  /// Reads "stage:" where it stands; the rank's only stage where it does not.
  bool stage_of(Action& action) {
    const std::size_t begin = at_;
    if (!digit()) {
      if (shape_.virtual_stages != 1)
        fail(begin, fmt::format("the rank holds {} stages, which one is not said", shape_.virtual_stages),
             "write stage:action, as in 2:F0");
      action.stage = rank_;
      return !failed_;
    }
    const std::int64_t stage = number("a stage");
    if (failed_) return false;
    if (!next_is(':')) {
      fail(at_, "expected : after the stage");
      return false;
    }
    ++at_;
    if (stage >= shape_.stages()) {
      fail(begin, fmt::format("stage {} of a schedule with stages 0 to {}", stage, shape_.stages() - 1));
      return false;
    }
    action.stage = static_cast<std::int32_t>(stage);
    return true;
  }

  const Schedule& shape_;
  std::int32_t rank_;
  const std::string& line_;
  SourcePosition start_;
  Diagnostics& diagnostics_;
  std::size_t at_ = 0;
  bool failed_ = false;
};

}  // namespace

std::vector<std::string> to_text(const Schedule& schedule) {
  std::vector<std::string> lines;
  for (std::size_t rank = 0; rank < schedule.rank_actions.size(); ++rank) {
    const bool only_stage = schedule.virtual_stages == 1;
    lines.push_back(line_of(schedule.rank_actions[rank],
                            only_stage ? std::optional(static_cast<std::int32_t>(rank)) : std::nullopt));
  }
  return lines;
}

Result<Schedule> from_text(const Schedule& shape, const std::vector<std::string>& lines,
                           const std::string& name, const std::vector<SourcePosition>& starts) {
  Result<Schedule> result;
  if (static_cast<std::int64_t>(lines.size()) != shape.pipeline_ranks) {
    result.diagnostics.error({.file = name}, fmt::format("{} lines of actions for {} pipeline ranks",
                                                         lines.size(), shape.pipeline_ranks));
    return result;
  }
  Schedule schedule = shape;
  schedule.rank_actions.clear();
  for (std::size_t rank = 0; rank < lines.size(); ++rank) {
    const SourcePosition start =
        rank < starts.size() ? starts[rank] : SourcePosition{name, static_cast<int>(rank) + 1, 1};
    LineParser parser(shape, static_cast<std::int32_t>(rank), lines[rank], start, result.diagnostics);
    schedule.rank_actions.push_back(parser.run());
  }
  if (!result.diagnostics.has_errors()) result.value = std::move(schedule);
  return result;
}

}  // namespace specs
