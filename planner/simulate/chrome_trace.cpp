#include "planner/simulate/chrome_trace.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "planner/simulate/rank_usage.h"

namespace planner {
namespace {

using specs::Action;
using specs::ActionKind;

constexpr std::int32_t compute_thread = 0;
constexpr std::int32_t gather_thread = 1;
constexpr std::int32_t reduction_thread = 2;
constexpr std::int32_t first_link_thread = 3;  ///< plus the receiver's rank

std::int32_t thread_of(const Task& task) {
  switch (task.action.kind) {
    case ActionKind::gather_parameters:
    case ActionKind::release_parameters:
      return gather_thread;
    case ActionKind::reduce_gradients:
    case ActionKind::reduce_tied:
      return reduction_thread;
    default:
      return task.to_rank < 0 ? compute_thread : first_link_thread + task.to_rank;
  }
}

std::string thread_name(std::int32_t thread) {
  switch (thread) {
    case compute_thread:
      return "compute";
    case gather_thread:
      return "parameter gathers";
    case reduction_thread:
      return "gradient reductions";
    default:
      return fmt::format("link to pipeline rank {}", thread - first_link_thread);
  }
}

bool carries_gradient(ActionKind kind) {
  return kind == ActionKind::send_gradient || kind == ActionKind::reshard_gradient;
}

/// The stages that a transfer leads from and to: a send names the first, a reshard the second.
std::pair<std::int32_t, std::int32_t> ends_of(const Action& transfer) {
  const std::int32_t step = carries_gradient(transfer.kind) ? -1 : 1;
  const bool names_target =
      transfer.kind == ActionKind::reshard_activation || transfer.kind == ActionKind::reshard_gradient;
  const std::int32_t from = names_target ? transfer.stage - step : transfer.stage;
  return {from, from + step};
}

class TraceWriter {
 public:
  TraceWriter(const StepSimulation& step, const TraceNames& names) : step_(step), names_(names) {}

  std::string write() {
    text_ =
        R"({"displayTimeUnit":"ms","otherData":{"title":)" + quoted(names_.title) + R"(},"traceEvents":[)";
    for (std::size_t rank = 0; rank < names_.rank_names.size(); ++rank) {
      add_process(rank);
      if (step_.update_seconds > 0) add_update(static_cast<std::int32_t>(rank));
    }
    for (const TimedTask& timed : step_.pipeline.tasks) add_slice(timed);
    for (const TimedTask& timed : step_.pipeline.tasks)
      if (timed.task.to_rank >= 0 && timed.task.seconds > 0) add_flow(timed);
    text_ += "\n]}\n";
    return std::move(text_);
  }

 private:
  static std::string quoted(const std::string& text) { return nlohmann::json(text).dump(); }

  /// Begins an event; what follows are its further fields and a brace.
  void open_event() {
    text_ += first_ ? "\n" : ",\n";
    first_ = false;
  }

  void add_metadata(std::int64_t process, std::int32_t thread, std::string_view what,
                    const std::string& argument) {
    open_event();
    fmt::format_to(std::back_inserter(text_), R"({{"ph":"M","pid":{},"tid":{},"name":"{}","args":{{{}}}}})",
                   process, thread, what, argument);
  }

  void add_process(std::size_t rank) {
    const auto process = static_cast<std::int64_t>(rank);
    add_metadata(process, 0, "process_name", R"("name":)" + quoted(names_.rank_names[rank]));
    add_metadata(process, 0, "process_sort_index", fmt::format(R"("sort_index":{})", rank));
  }

  static std::int64_t nanoseconds(double seconds) { return std::llround(1e9 * seconds); }
  static double microseconds(std::int64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e3; }

  /// A thread is named when its first slice comes.
  void name_thread(std::int32_t process, std::int32_t thread) {
    if (!named_.insert({process, thread}).second) return;
    add_metadata(process, thread, "thread_name", R"("name":)" + quoted(thread_name(thread)));
    add_metadata(process, thread, "thread_sort_index", fmt::format(R"("sort_index":{})", thread));
  }

  void add_slice(const TimedTask& timed) {
    const Task& task = timed.task;
    if (task.seconds <= 0) return;
    const std::int32_t thread = thread_of(task);
    name_thread(task.rank, thread);
    if (is_compute(task.action.kind) && task.action.kind != ActionKind::weight_gradient)
      by_work_[{task.action.kind != ActionKind::forward, task.action.stage, task.action.micro_batch}] =
          &timed;
    open_event();
    const bool whole_stage = task.action.micro_batch < 0;
    const std::int64_t start = nanoseconds(timed.start_seconds);
    // Both ends are rounded, not the duration: slices of a track that touch must not overlap by a nanosecond,
    // or viewers nest them.
    const std::int64_t end = std::max(start + 1, nanoseconds(timed.start_seconds + task.seconds));
    fmt::format_to(std::back_inserter(text_),
                   R"({{"ph":"X","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},"cat":"step","name":"{}{}",)"
                   R"("args":{{"stage":{}{}}}}})",
                   task.rank, thread, microseconds(start), microseconds(end - start),
                   action_words(task.action.kind),
                   whole_stage ? "" : fmt::format(" {}", task.action.micro_batch), task.action.stage,
                   whole_stage ? "" : fmt::format(R"(,"micro_batch":{})", task.action.micro_batch));
  }

  void add_update(std::int32_t rank) {
    name_thread(rank, compute_thread);
    open_event();
    fmt::format_to(
        std::back_inserter(text_),
        R"({{"ph":"X","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},"cat":"step","name":"update"}})", rank,
        compute_thread, microseconds(nanoseconds(step_.pipeline.seconds)),
        microseconds(nanoseconds(step_.pipeline.seconds + step_.update_of(static_cast<std::size_t>(rank))) -
                     nanoseconds(step_.pipeline.seconds)));
  }

  /// Viewers bind the end of a flow to the slice that encloses its time or begins with it and has its
  /// category.
  void add_flow_end(std::string_view phase, const TimedTask& slice, std::int64_t id) {
    open_event();
    fmt::format_to(std::back_inserter(text_),
                   R"({{"ph":"{}","pid":{},"tid":{},"ts":{:.3f},"cat":"step","name":"transfer","id":{}{}}})",
                   phase, slice.task.rank, thread_of(slice.task),
                   microseconds(nanoseconds(slice.start_seconds)), id, phase == "f" ? R"(,"bp":"e")" : "");
  }

  void add_flow(const TimedTask& transfer) {
    const auto [from, to] = ends_of(transfer.task.action);
    const bool gradient = carries_gradient(transfer.task.action.kind);
    const std::int32_t micro_batch = transfer.task.action.micro_batch;
    const auto maker = by_work_.find({gradient, from, micro_batch});
    const auto user = by_work_.find({gradient, to, micro_batch});
    if (maker == by_work_.end() || user == by_work_.end()) return;
    ++flows_;
    add_flow_end("s", *maker->second, flows_);
    add_flow_end("t", transfer, flows_);
    add_flow_end("f", *user->second, flows_);
  }

  const StepSimulation& step_;
  const TraceNames& names_;
  std::string text_;
  bool first_ = true;
  std::int64_t flows_ = 0;
  std::set<std::pair<std::int32_t, std::int32_t>> named_;
  /// Compute slices by (gradient, stage, micro-batch).
  std::map<std::tuple<bool, std::int32_t, std::int32_t>, const TimedTask*> by_work_;
};

}  // namespace

std::string chrome_trace(const StepSimulation& step, const TraceNames& names) {
  return TraceWriter(step, names).write();
}

}  // namespace planner
