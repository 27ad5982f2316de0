// The verbs of dsplan, one file each. A verb adds its sub-command with a callback that does the work and sets
// the invocation's exit code.
#pragma once

#include <array>

#include "cli/dsplan/invocation.h"

namespace CLI {
class App;
}

namespace cli {

void add_plan_verb(CLI::App& app, Invocation& invocation);
void add_inspect_verb(CLI::App& app, Invocation& invocation);
void add_estimate_verb(CLI::App& app, Invocation& invocation);
void add_explain_verb(CLI::App& app, Invocation& invocation);
void add_why_not_verb(CLI::App& app, Invocation& invocation);
void add_diff_verb(CLI::App& app, Invocation& invocation);
void add_what_if_verb(CLI::App& app, Invocation& invocation);
void add_compile_verb(CLI::App& app, Invocation& invocation);
void add_simulate_verb(CLI::App& app, Invocation& invocation);
void add_report_verb(CLI::App& app, Invocation& invocation);
void add_verify_verb(CLI::App& app, Invocation& invocation);
void add_show_verb(CLI::App& app, Invocation& invocation);
void add_catalog_verb(CLI::App& app, Invocation& invocation);

/// In the order in which --help lists them.
inline constexpr std::array all_verbs{
    add_plan_verb,   add_inspect_verb, add_estimate_verb, add_explain_verb,  add_why_not_verb,
    add_diff_verb,   add_what_if_verb, add_compile_verb,  add_simulate_verb, add_report_verb,
    add_verify_verb, add_show_verb,    add_catalog_verb};

}  // namespace cli
