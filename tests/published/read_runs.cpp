#include "tests/published/read_runs.h"

namespace published {

RunSet read_runs(const std::filesystem::path& path) {
  Table table;
  read_table(path, table);
  need_run_columns(path, table);
  need_columns(path, table, {"usable", "step_time_s"});
  RunSet set;
  for (const Row& row : table.rows) {
    const std::string_view confidence = row.text("confidence");
    if (row.number("usable") != 1 || (confidence != "a" && confidence != "b")) {
      ++set.left_out;
      continue;
    }
    PublishedRun run;
    std::string reason = convert(row, run);
    if (reason.empty() && run.step_seconds <= 0) reason = "no step_time_s";
    if (!reason.empty())
      set.unpriced.emplace_back(std::string(row.text("id")), reason);
    else
      set.runs.push_back(std::move(run));
  }
  set.noise = repeat_noise(set.runs);
  set.runs = merge_identical(std::move(set.runs));
  return set;
}

}  // namespace published
