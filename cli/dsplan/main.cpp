#include <cstdio>
#include <exception>

#include <CLI/CLI.hpp>

#include "cli/dsplan/verbs.h"
#include "cli/exit_codes.h"
#include "cli/version.h"

namespace {

int run(int argc, char** argv) {
  CLI::App app{"Plans the training of large models."};
  app.set_version_flag("--version", cli::version_line("dsplan"));
  app.require_subcommand(1);
  int exit_code = cli::exit_done;
  cli::add_show(app, exit_code);
  cli::add_catalog(app, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? cli::exit_done : cli::exit_bad_input;
  }
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "dsplan: internal error: %s\n", error.what());
    return cli::exit_internal;
  }
}
