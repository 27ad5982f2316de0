// One run of dsplan: where it writes, how, and what it answers.
#pragma once

#include <initializer_list>
#include <ostream>
#include <string>
#include <string_view>

#include "cli/dsplan/output/text.h"
#include "cli/exit_codes.h"
#include "planner/report/report.h"
#include "specs/diagnostics/diagnostic.h"

namespace cli {

struct Invocation {
  std::ostream& out;
  std::ostream& err;
  TextStyle style;
  bool json = false;
  int exit_code = exit_done;

  /// The report on `out`, as text or JSON.
  void print(const planner::Report& report);

  /// Errors and warnings: text on `err`; with JSON also {"diagnostics": […]} on `out` where there are errors.
  void print(const specs::Diagnostics& diagnostics);

  /// Whether a file of this name may be written: false after it has refused a name that cannot be one, or
  /// that of a file that is read. Asked before the work whose result it is to hold.
  bool accepts_output(const std::string& path, std::initializer_list<std::string> inputs);

  /// Writes a file whole or not at all; false after it has said why not and set `internal`.
  bool write(const std::string& path, std::string_view text);

  /// That a file was written: a line after the report; with JSON nothing.
  void say_written(const std::string& path);

  /// Prints and sets `bad_input`. False, so that a verb can `return refuse(…)`.
  bool refuse(const specs::Diagnostics& diagnostics);
};

}  // namespace cli
