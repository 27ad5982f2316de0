#include "specs/interchange/json_config.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace specs {

namespace {

constexpr double largest_exact_integer = 9007199254740992.0;  // 2^53

std::string shown(const nlohmann::json& value) {
  constexpr std::size_t longest = 60;
  const std::string text = value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  return text.size() <= longest ? text : text.substr(0, longest) + "…";
}

std::string line_at(std::string_view text, std::size_t byte) {
  const std::size_t begin = byte == 0 ? 0 : text.rfind('\n', byte - 1) + 1;
  const std::size_t end = std::min(text.find('\n', byte), text.size());
  return std::string(text.substr(begin, end - begin));
}

}  // namespace

SourcePosition position_of_byte(std::string_view text, std::size_t byte, const std::string& file_name) {
  SourcePosition position{file_name, 1, 1};
  for (std::size_t i = 0; i < std::min(byte, text.size()); ++i) {
    if (text[i] == '\n') {
      ++position.line;
      position.column = 1;
    } else if ((text[i] & 0xC0) != 0x80) {
      ++position.column;
    }
  }
  return position;
}

Result<nlohmann::json> parse_json_object(std::string_view text, const std::string& file_name) {
  Result<nlohmann::json> result;
  try {
    result.value = nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    const std::size_t byte = error.byte == 0 ? 0 : error.byte - 1;
    Diagnostic diagnostic;
    diagnostic.position = position_of_byte(text, byte, file_name);
    diagnostic.message =
        text.find_first_not_of(" \t\r\n") == std::string_view::npos ? "is empty" : "not JSON";
    diagnostic.source_line = line_at(text, std::min(byte, text.size()));
    result.diagnostics.add(std::move(diagnostic));
    return result;
  }
  if (!result.value->is_object()) {
    result.diagnostics.error({file_name, 1, 1},
                             fmt::format("expected an object, saw {}", shown(*result.value)));
    result.value.reset();
  }
  return result;
}

const nlohmann::json* JsonConfig::find(Names names, std::string& name) const {
  for (const char* candidate : names) {
    const auto found = object_.find(candidate);
    if (found == object_.end() || found->is_null()) continue;
    name = candidate;
    return &*found;
  }
  return nullptr;
}

bool JsonConfig::has(const char* name) const {
  const auto found = object_.find(name);
  return found != object_.end() && !found->is_null();
}

std::int64_t JsonConfig::integer(Names names, std::int64_t fallback, std::int64_t minimum) {
  std::string name;
  const nlohmann::json* value = find(names, name);
  if (value == nullptr) {
    defaulted_.push_back(fmt::format("{} {}", *names.begin(), fallback));
    return fallback;
  }
  const double number = value->is_number() ? value->get<double>() : NAN;
  const bool whole = number == std::floor(number) && std::abs(number) <= largest_exact_integer;
  if (!whole) {
    error(name, fmt::format("{}: expected integer, saw {}", name, shown(*value)));
    return fallback;
  }
  if (number < static_cast<double>(minimum)) {
    error(name, fmt::format("{} = {} is below the minimum of {}", name, number, minimum));
    return fallback;
  }
  return static_cast<std::int64_t>(number);
}

double JsonConfig::number(Names names, double fallback) {
  std::string name;
  const nlohmann::json* value = find(names, name);
  if (value == nullptr) return fallback;
  if (value->is_number()) return value->get<double>();
  error(name, fmt::format("{}: expected number, saw {}", name, shown(*value)));
  return fallback;
}

bool JsonConfig::flag(Names names, bool fallback) {
  std::string name;
  const nlohmann::json* value = find(names, name);
  if (value == nullptr) return fallback;
  if (value->is_boolean()) return value->get<bool>();
  error(name, fmt::format("{}: expected true or false, saw {}", name, shown(*value)));
  return fallback;
}

std::string JsonConfig::text(Names names, const std::string& fallback) {
  std::string name;
  const nlohmann::json* value = find(names, name);
  if (value == nullptr) return fallback;
  if (value->is_string()) return value->get<std::string>();
  error(name, fmt::format("{}: expected string, saw {}", name, shown(*value)));
  return fallback;
}

void JsonConfig::add(Severity severity, const std::string& name, std::string message, std::string remedy) {
  Diagnostic diagnostic;
  diagnostic.severity = severity;
  diagnostic.position.file = file_name_;
  const std::size_t byte = name.empty() ? std::string_view::npos : text_.find(fmt::format("\"{}\"", name));
  if (byte != std::string_view::npos) {
    diagnostic.position = position_of_byte(text_, byte, file_name_);
    diagnostic.source_line = line_at(text_, byte);
    diagnostic.caret_length = static_cast<int>(name.size()) + 2;
  }
  diagnostic.message = std::move(message);
  diagnostic.remedy = std::move(remedy);
  diagnostics_.add(std::move(diagnostic));
}

void JsonConfig::error(const std::string& name, std::string message, std::string remedy) {
  add(Severity::error, name, std::move(message), std::move(remedy));
}

void JsonConfig::note(const std::string& name, std::string message) {
  add(Severity::note, name, std::move(message), {});
}

}  // namespace specs
