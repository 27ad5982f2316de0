#include <CLI/CLI.hpp>

#include "cli/version.h"
#include "runtime/version.h"

int main(int argc, char** argv) {
  CLI::App app{"Trains what a plan describes."};
  app.set_version_flag("--version",
                       cli::version_line("dsrun") + " (LibTorch " + runtime::libtorch_version() + ")");
  app.require_subcommand(1);
  CLI11_PARSE(app, argc, argv);
  return 0;
}
