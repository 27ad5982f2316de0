#include "tests/architecture/house_rules.h"

#include <algorithm>
#include <array>
#include <optional>
#include <sstream>

namespace architecture {
namespace {

constexpr std::size_t longest_file_lines = 600;

/// A folder, the folders whose headers its sources may include, and whether they may include LibTorch's.
struct Room {
  std::string_view folder;
  std::vector<std::string_view> sees;
  bool sees_libtorch = false;
};

/// The arrows of the house: specs <- cost_models <- planner <- cli/dsplan; specs <- runtime <- cli/dsrun.
/// Within specs: diagnostics, catalog <- schedule <- language <- plan <- interchange. Within planner: wording
/// <- space <- pricing <- search <- certificate <- plan <- questions <- report. Benchmarks and tests of whole
/// programs may look anywhere on their side.
const std::vector<Room>& rooms() {
  static const std::vector<Room> all{
      {"specs/diagnostics", {"specs/diagnostics"}},
      {"specs/catalog", {"specs/catalog"}},
      {"specs/schedule", {"specs/schedule", "specs/diagnostics"}},
      {"specs/language", {"specs/language", "specs/schedule", "specs/catalog", "specs/diagnostics"}},
      {"specs/plan",
       {"specs/plan", "specs/language", "specs/schedule", "specs/catalog", "specs/diagnostics"}},
      {"specs/interchange", {"specs"}},
      {"cost_models", {"cost_models", "specs"}},
      {"planner/wording", {"planner/wording", "cost_models", "specs"}},
      {"planner/space", {"planner/space", "planner/wording", "cost_models", "specs"}},
      {"planner/pricing", {"planner/pricing", "planner/space", "cost_models", "specs"}},
      {"planner/search", {"planner/search", "planner/pricing", "planner/space", "cost_models", "specs"}},
      {"planner/certificate",
       {"planner/certificate", "planner/search", "planner/pricing", "planner/space", "planner/wording",
        "cost_models", "specs"}},
      {"planner/plan",
       {"planner/plan", "planner/certificate", "planner/search", "planner/pricing", "planner/space",
        "planner/wording", "cost_models", "specs"}},
      {"planner/questions",
       {"planner/questions", "planner/plan", "planner/certificate", "planner/search", "planner/pricing",
        "planner/space", "planner/wording", "cost_models", "specs"}},
      {"planner/simulate", {"planner/simulate", "planner/wording", "cost_models", "specs"}},
      {"planner", {"planner", "cost_models", "specs"}},
      {"runtime", {"runtime", "specs"}, true},
      {"cli", {"cli", "specs/diagnostics"}},
      {"cli/dsplan", {"cli", "planner", "cost_models", "specs"}},
      {"cli/dsrun", {"cli", "runtime", "specs"}, true},
      {"tests/specs", {"tests", "specs"}},
      {"tests/cost_models", {"tests", "cost_models", "specs"}},
      {"tests/planner", {"tests", "planner", "cost_models", "specs"}},
      {"tests/runtime", {"tests", "runtime", "specs"}, true},
      {"tests/memory", {"tests", "runtime", "cost_models", "specs"}, true},
      {"tests/numerics", {"tests", "runtime", "specs"}, true},
      {"tests/outside_reference", {"tests", "runtime", "specs"}, true},
      {"tests/stack_profile", {"tests", "runtime", "planner", "cost_models", "specs"}, true},
      {"tests/cli/dsplan", {"tests", "cli", "planner", "cost_models", "specs"}},
      {"tests/cli/dsrun", {"tests", "cli", "runtime", "specs"}, true},
      {"tests", {"tests", "cli", "planner", "cost_models", "specs"}},
      {"bench/runtime", {"bench", "tests", "runtime", "specs"}, true},
      {"bench", {"bench", "tests", "planner", "cost_models", "specs"}},
  };
  return all;
}

bool lies_in(std::string_view path, std::string_view folder) {
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

/// The innermost room that holds the path.
const Room* room_of(std::string_view path) {
  const Room* best = nullptr;
  for (const Room& room : rooms()) {
    if (lies_in(path, room.folder) && (best == nullptr || room.folder.size() > best->folder.size()))
      best = &room;
  }
  return best;
}

/// `name` of an `#include <name>` or `#include "name"` line, and which of the two.
struct Include {
  std::string name;
  bool quoted;
};

std::optional<Include> include_of(const std::string& line) {
  const std::size_t start = line.find_first_not_of(" \t");
  if (start == std::string::npos || line.compare(start, 8, "#include") != 0) return std::nullopt;
  const std::size_t open = line.find_first_of("<\"", start + 8);
  if (open == std::string::npos) return std::nullopt;
  const std::size_t close = line.find(line[open] == '<' ? '>' : '"', open + 1);
  if (close == std::string::npos) return std::nullopt;
  return Include{line.substr(open + 1, close - open - 1), line[open] == '"'};
}

bool is_libtorch(std::string_view header) {
  constexpr std::array<std::string_view, 3> roots{"torch", "ATen", "c10"};
  return std::any_of(roots.begin(), roots.end(),
                     [&](std::string_view root) { return lies_in(header, root); });
}

/// What is wrong with an include in a source of `room`; nothing when all is well.
std::optional<std::string> fault_of(const Include& include, const Room& room) {
  if (include.name.find("..") != std::string::npos) return "goes up with '..'; name it from the root";
  if (is_libtorch(include.name)) {
    if (room.sees_libtorch) return std::nullopt;
    return "is LibTorch's, which only the runtime, dsrun and their tests see";
  }
  const bool ours = room_of(include.name) != nullptr;
  if (include.quoted && !ours) return "is in quotes but not in a room; name it from the root";
  if (!ours) return std::nullopt;
  if (!include.quoted) return "is ours; put it in quotes";
  const bool allowed = std::any_of(room.sees.begin(), room.sees.end(),
                                   [&](std::string_view folder) { return lies_in(include.name, folder); });
  // The rooms of the two programs are no libraries for anything else.
  const Room& target = *room_of(include.name);
  const bool programs = target.folder.starts_with("cli/") && !room.folder.ends_with(target.folder) &&
                        !room.folder.starts_with("tests");
  if (allowed && !programs) return std::nullopt;
  std::string sees;
  for (std::string_view folder : room.sees) sees += (sees.empty() ? "" : ", ") + std::string(folder);
  return "may not be included from " + std::string(room.folder) + ", which sees " + sees;
}

/// Where tests that run side by side, or after one that was killed, would meet in a folder.
bool names_a_shared_folder(std::string_view path, std::string_view line) {
  return path.starts_with("tests/") && !path.starts_with("tests/support/") &&
         !path.starts_with("tests/architecture/") &&
         line.find("temp_directory_path") != std::string_view::npos;
}

}  // namespace

std::vector<std::string> broken_rules(std::string_view path, std::string_view text) {
  std::vector<std::string> findings;
  const auto report = [&](std::size_t line, const std::string& what) {
    findings.push_back(std::string(path) + ":" + std::to_string(line) + ": " + what);
  };
  const Room* room = room_of(path);
  if (room == nullptr) {
    report(1, "is in no room that tests/architecture/house_rules.cpp knows");
    return findings;
  }
  std::istringstream lines{std::string(text)};
  std::size_t number = 0;
  bool once = false;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    once = once || line == "#pragma once";
    if (const auto include = include_of(line)) {
      if (const auto fault = fault_of(*include, *room)) report(number, "'" + include->name + "' " + *fault);
    }
    if (names_a_shared_folder(path, line))
      report(number, "names a folder that others may have; take tests::TemporaryFolder");
  }
  if (path.ends_with(".h") && !once) report(1, "has no #pragma once");
  if (number > longest_file_lines) {
    report(number, "has " + std::to_string(number) + " lines, over " + std::to_string(longest_file_lines) +
                       "; one concept a file");
  }
  return findings;
}

}  // namespace architecture
