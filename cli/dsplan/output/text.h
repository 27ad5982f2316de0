// A report as text for a terminal or a pipe.
#pragma once

#include <string>

#include "planner/report/report.h"

namespace cli {

struct TextStyle {
  int width = 100;      ///< columns; the last text column of a table wraps to stay within
  bool colour = false;  ///< ANSI bold and dim
};

std::string render_text(const planner::Report& report, const TextStyle& style);

/// Columns that the UTF-8 text takes on a terminal (one per code point).
int display_width(const std::string& text);

}  // namespace cli
