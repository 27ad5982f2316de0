// The verbs of dsplan. Each adds its options to the program; where it is the one that was asked for, it does
// its work after parsing and leaves its exit code.
#pragma once

#include <CLI/App.hpp>

namespace cli {

void add_show(CLI::App& app, int& exit_code);
void add_catalog(CLI::App& app, int& exit_code);

}  // namespace cli
