#include "specs/plan/plan_json.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "specs/language/text_file.h"
#include "specs/plan/finite_keys.h"
#include "specs/plan/json_keys.h"
#include "specs/plan/json_text.h"
#include "specs/plan/plan_check.h"
#include "specs/plan/plan_keys.h"
#include "specs/plan/plan_schema.h"

namespace specs {
namespace {

using nlohmann::json;

/// "[json.exception.parse_error.101] parse error at line 3, column 5: syntax error while parsing …" without
/// what the position says already.
std::string reason_of(const json::parse_error& error) {
  std::string reason = error.what();
  for (const std::string_view lead : {"] ", ": "})
    if (const std::size_t at = reason.find(lead); at != std::string::npos) reason.erase(0, at + lead.size());
  return reason;
}

/// Keeps the first key that stands twice in one object; the parser alone would take the last.
class DuplicateKeys {
 public:
  bool operator()(int, json::parse_event_t event, json& parsed) {
    if (event == json::parse_event_t::object_start) open_.emplace_back();
    if (event == json::parse_event_t::object_end) open_.pop_back();
    if (event == json::parse_event_t::key && first_.empty()) {
      const std::string key = parsed.get<std::string>();
      ++occurrences_[key];
      if (!open_.back().insert(key).second) first_ = key;
    }
    return true;
  }
  const std::string& first() const { return first_; }

  /// Where its second writing stands: the parser tells no places, but how many such keys came before. The
  /// start of the text where the key is spelled with escapes.
  std::size_t offset_in(std::string_view text) const {
    const std::string quoted = json(first_).dump();
    std::int64_t left = occurrences_.at(first_);
    for (std::size_t at = text.find(quoted); at != std::string_view::npos; at = text.find(quoted, at + 1)) {
      const std::size_t next = text.find_first_not_of(" \t\r\n", at + quoted.size());
      if (next != std::string_view::npos && text[next] == ':' && --left == 0) return at;
    }
    return 0;
  }

 private:
  std::vector<std::set<std::string>> open_;
  std::map<std::string, std::int64_t> occurrences_;
  std::string first_;
};

std::optional<json> parse(std::string_view text, const JsonLocator& locator, Diagnostics& diagnostics) {
  try {
    DuplicateKeys duplicates;
    json document = json::parse(text, std::ref(duplicates));
    if (duplicates.first().empty()) return document;
    const std::string quoted = json(duplicates.first()).dump();
    diagnostics.add(locator.at_offset(duplicates.offset_in(text), quoted.size(),
                                      fmt::format("the key {} stands twice in one object", quoted)));
    return std::nullopt;
  } catch (const json::parse_error& error) {
    const std::size_t offset = error.byte > 0 ? error.byte - 1 : 0;
    const bool at_end = offset >= text.size();
    diagnostics.add(locator.at_offset(
        offset, 1, at_end ? "not JSON: the file ends in the middle" : "not JSON: " + reason_of(error)));
  } catch (const json::out_of_range& error) {  // has no position, but quotes the number
    const std::string what = error.what();
    const std::size_t quote = std::min(what.find('\''), what.size() - 1);
    const std::string number = what.substr(quote + 1, what.rfind('\'') - quote - 1);
    diagnostics.add(locator.at_offset(text.find(number), number.size(), "the number is beyond any double"));
  }
  return std::nullopt;
}

/// The version is judged before the schema, which is that of this version alone.
bool has_known_version(const json& document, const JsonLocator& locator, Diagnostics& diagnostics) {
  if (!document.is_object() || !document.contains("format_version")) {
    diagnostics.add(locator.at_value("", "not a plan: there is no format_version"));
    return false;
  }
  if (document["format_version"] == plan_format_version) return true;
  Diagnostic problem = locator.at_value(
      "/format_version", fmt::format("/format_version: this program reads version {}", plan_format_version));
  problem.seen = locator.shown("/format_version");
  problem.remedy = "plan again with this version, or use the version that made the plan";
  diagnostics.add(std::move(problem));
  return false;
}

/// More than a reader goes through; each is looked up in the text.
constexpr std::size_t most_shown = 50;

/// Returns how many violations it does not tell.
template <class Violation>
std::size_t keep_first(std::vector<Violation>& violations) {
  if (violations.size() <= most_shown) return 0;
  const std::size_t rest = violations.size() - most_shown;
  violations.erase(violations.begin() + most_shown, violations.end());
  return rest;
}

void tell_rest(std::size_t rest, const std::string& name, Diagnostics& diagnostics) {
  if (rest > 0) diagnostics.error({name, 0, 0}, fmt::format("and {} more errors of this file", rest));
}

std::size_t check_schema(const json& document, const JsonLocator& locator, Diagnostics& diagnostics) {
  std::vector<SchemaViolation> violations = schema_violations(document);
  const std::size_t rest = keep_first(violations);
  for (const SchemaViolation& violation : violations) {
    Diagnostic problem = violation.at_key ? locator.at_key(violation.pointer, violation.message)
                                          : locator.at_value(violation.pointer, violation.message);
    problem.expected = violation.expected;
    if (!violation.expected.empty()) problem.seen = locator.shown(violation.pointer);
    problem.remedy = violation.remedy;
    diagnostics.add(std::move(problem));
  }
  return rest;
}

std::size_t check_plan(const Plan& plan, const JsonLocator& locator, Diagnostics& diagnostics) {
  std::vector<PlanViolation> violations = plan_violations(plan);
  const std::size_t rest = keep_first(violations);
  for (const PlanViolation& violation : violations) {
    Diagnostic problem = locator.at_value(violation.pointer, violation.message);
    if (violation.offset >= 0) {
      const SourcePosition start = locator.start_of_string(violation.pointer);
      problem.position.column = start.column + static_cast<int>(violation.offset);
      problem.caret_length = 1;
    }
    problem.remedy = violation.remedy;
    diagnostics.add(std::move(problem));
  }
  return rest;
}

nlohmann::ordered_json object_of(Plan plan) {
  JsonKeyWriter writer;
  visit_keys(writer, plan);
  return std::move(writer).object();
}

}  // namespace

std::string non_finite_key(Plan plan) {
  FiniteKeys keys;
  visit_keys(keys, plan);
  return keys.non_finite();
}

std::string write_plan(const Plan& plan) { return json_text(object_of(plan)); }

Result<Plan> read_plan_text(std::string_view text, const std::string& name) {
  Result<Plan> result;
  const JsonLocator locator(text, name);
  const std::optional<json> document = parse(text, locator, result.diagnostics);
  if (!document || !has_known_version(*document, locator, result.diagnostics)) return result;
  std::size_t rest = check_schema(*document, locator, result.diagnostics);
  if (result.diagnostics.has_errors()) {
    result.diagnostics.sort_by_position();
    tell_rest(rest, name, result.diagnostics);
    return result;
  }
  Plan plan;
  JsonKeyReader reader(*document);
  visit_keys(reader, plan);
  rest = check_plan(plan, locator, result.diagnostics);
  result.diagnostics.sort_by_position();
  tell_rest(rest, name, result.diagnostics);
  if (!result.diagnostics.has_errors()) result.value = std::move(plan);
  return result;
}

Result<Plan> read_plan(const std::filesystem::path& path) {
  const Result<std::string> text = read_text_file(path);
  if (text) return read_plan_text(*text, path.string());
  Result<Plan> result;
  result.diagnostics = text.diagnostics;
  return result;
}

}  // namespace specs
