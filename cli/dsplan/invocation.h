// One run of dsplan: where it writes, how, and what it answers.
#pragma once

#include <ostream>
#include <string>

#include "cli/dsplan/output/text.h"
#include "planner/report/report.h"
#include "specs/diagnostics/diagnostic.h"

namespace cli {

/// The exit codes of both programs that dsplan uses.
enum class ExitCode : int {
  done = 0,
  no = 1,         ///< the answer is no: nothing fits, plans differ from what was asked
  bad_input = 2,  ///< a file, an option or an experiment is wrong
  internal = 3,   ///< a fault of this program or of the system
};

struct Invocation {
  std::ostream& out;
  std::ostream& err;
  TextStyle style;
  bool json = false;
  ExitCode exit_code = ExitCode::done;

  /// The report on `out`, as text or JSON.
  void print(const planner::Report& report);

  /// Errors and warnings: text on `err`; with JSON also {"diagnostics": […]} on `out` where there are errors.
  void print(const specs::Diagnostics& diagnostics);

  /// Prints and sets `bad_input`. False, so that a verb can `return refuse(…)`.
  bool refuse(const specs::Diagnostics& diagnostics);
};

}  // namespace cli
