#include <CLI/CLI.hpp>

#include "cli/version.h"

int main(int argc, char** argv) {
  CLI::App app{"Plans the training of large models."};
  app.set_version_flag("--version", cli::version_line("dsplan"));
  app.require_subcommand(1);
  CLI11_PARSE(app, argc, argv);
  return 0;
}
