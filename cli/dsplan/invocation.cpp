#include "cli/dsplan/invocation.h"

#include <filesystem>
#include <system_error>

#include <nlohmann/json.hpp>

#include "cli/dsplan/output/json.h"
#include "specs/language/text_file.h"

namespace cli {
namespace {

nlohmann::ordered_json to_json(const specs::Diagnostic& diagnostic) {
  nlohmann::ordered_json json;
  json["severity"] = diagnostic.severity == specs::Severity::error ? "error" : "warning";
  json["file"] = diagnostic.position.file;
  json["line"] = diagnostic.position.line;
  json["column"] = diagnostic.position.column;
  json["message"] = diagnostic.message;
  json["expected"] = diagnostic.expected;
  json["seen"] = diagnostic.seen;
  json["remedy"] = diagnostic.remedy;
  return json;
}

}  // namespace

void Invocation::print(const planner::Report& report) {
  if (json)
    out << cli::to_json(report).dump(2) << '\n';
  else
    out << render_text(report, style);
}

void Invocation::print(const specs::Diagnostics& diagnostics) {
  err << diagnostics.render();
  if (!json || !diagnostics.has_errors()) return;
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const specs::Diagnostic& diagnostic : diagnostics.entries()) list.push_back(to_json(diagnostic));
  out << nlohmann::ordered_json{{"diagnostics", list}}.dump(2) << '\n';
}

bool Invocation::accepts_output(const std::string& path, std::initializer_list<std::string> inputs) {
  specs::Diagnostics diagnostics = specs::unwritable(path);
  std::error_code error;
  for (const std::string& input : inputs)
    if (!input.empty() && std::filesystem::is_regular_file(path, error) &&
        std::filesystem::equivalent(path, input, error))
      diagnostics.error({path, 0, 0}, "would overwrite " + input + ", which is read",
                        "name another file to write");
  return !diagnostics.has_errors() || refuse(diagnostics);
}

bool Invocation::write(const std::string& path, std::string_view text) {
  const specs::Diagnostics written = specs::write_text_file(path, text);
  if (!written.has_errors()) return true;
  print(written);
  exit_code = exit_internal;
  return false;
}

void Invocation::say_written(const std::string& path) {
  if (!json) out << "\nwritten to " << path << '\n';
}

bool Invocation::refuse(const specs::Diagnostics& diagnostics) {
  print(diagnostics);
  exit_code = exit_bad_input;
  return false;
}

}  // namespace cli
