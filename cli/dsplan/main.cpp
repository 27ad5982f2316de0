#include <cstdlib>
#include <iostream>

#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/dsplan/application.h"
#include "cli/exit_codes.h"

namespace {

cli::TextStyle style_of_terminal() {
  cli::TextStyle style;
  if (isatty(STDOUT_FILENO) == 0) return style;
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40) style.width = size.ws_col;
  const char* no_colour = std::getenv("NO_COLOR");
  style.colour = no_colour == nullptr || *no_colour == '\0';
  return style;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const int code = cli::run_dsplan(arguments, std::cout, std::cerr, style_of_terminal());
  if (std::cout.flush()) return code;
  std::cerr << "error: the output cannot be written\n  remedy: is the disk full, or the reader gone?\n";
  return cli::exit_internal;
}
