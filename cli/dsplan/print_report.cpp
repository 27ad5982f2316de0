#include "cli/dsplan/print_report.h"

#include <cstdio>
#include <cstdlib>
#include <string>

#include <nlohmann/json.hpp>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/dsplan/output/json.h"
#include "cli/dsplan/output/text.h"

namespace cli {

namespace {

TextStyle terminal_style() {
  TextStyle style;
  if (isatty(STDOUT_FILENO) == 0) return style;
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40) style.width = size.ws_col;
  const char* no_colour = std::getenv("NO_COLOR");
  style.colour = no_colour == nullptr || *no_colour == '\0';
  return style;
}

}  // namespace

void print_report(const planner::Report& report, OutputFormat format) {
  const std::string text =
      format == OutputFormat::json ? to_json(report).dump(2) + "\n" : render_text(report, terminal_style());
  std::fputs(text.c_str(), stdout);
}

}  // namespace cli
