// The command line of dsrun.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/launch/launch_environment.h"

namespace CLI {
class App;
}

namespace cli {

struct DsrunArguments {
  std::string plan;
  std::optional<std::string> data;
  std::int64_t data_tokens = 0;              ///< 0: all
  std::optional<std::string> run_directory;  ///< nothing: runs/<name of the experiment>
  std::optional<std::int64_t> steps;
  std::optional<std::string> initial_weights;
  bool resume = false;
  bool overwrite = false;
  bool dry_run = false;
  bool debug_synchronise = false;
  bool probe = false;
  std::optional<std::string> probe_file;
  std::string log_level = "info";
  double timeout_seconds = 600;
  std::int64_t threads_per_rank = 0;
  runtime::Launcher launcher = runtime::Launcher::automatic;
};

/// Declares the options; `arguments` is filled when `app` parses.
void declare(CLI::App& app, DsrunArguments& arguments);

}  // namespace cli
