#include "specs/plan/json_text.h"

#include <algorithm>
#include <optional>

namespace specs {
namespace {

constexpr std::size_t line_width = 110;

void write(const nlohmann::ordered_json& value, std::size_t indent, std::size_t lead, std::string& text) {
  if (!value.is_structured() || value.empty()) {
    text += value.dump();
    return;
  }
  // A container of containers is broken before its text is made: only leaves are tried on one line.
  const bool nested = std::any_of(value.begin(), value.end(), [](const auto& inner) {
    return inner.is_structured() &&
           std::any_of(inner.begin(), inner.end(), [](const auto& leaf) { return leaf.is_structured(); });
  });
  if (!nested) {
    std::string line;
    for (auto inner = value.begin(); inner != value.end(); ++inner) {
      if (!line.empty()) line += ", ";
      if (value.is_object()) line += nlohmann::ordered_json(inner.key()).dump() + ": ";
      write(*inner, 0, 0, line);
      if (line.size() > line_width || line.find('\n') != std::string::npos) break;
    }
    if (lead + line.size() + 2 <= line_width && line.find('\n') == std::string::npos) {
      text += value.is_object() ? "{" + line + "}" : "[" + line + "]";
      return;
    }
  }
  text += value.is_object() ? "{" : "[";
  const std::string inset(indent + 2, ' ');
  bool first = true;
  for (auto inner = value.begin(); inner != value.end(); ++inner) {
    text += first ? "\n" : ",\n";
    first = false;
    const std::string key =
        value.is_object() ? nlohmann::ordered_json(inner.key()).dump() + ": " : std::string();
    text += inset + key;
    write(*inner, indent + 2, indent + 2 + key.size(), text);
  }
  text += "\n" + std::string(indent, ' ') + (value.is_object() ? "}" : "]");
}

/// Walks valid JSON.
class Scanner {
 public:
  Scanner(std::string_view text, std::size_t at) : text_(text), at_(at) {}

  std::size_t at() const { return at_; }
  char here() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void step() { ++at_; }
  void skip_space() {
    while (at_ < text_.size() && (here() == ' ' || here() == '\n' || here() == '\t' || here() == '\r')) ++at_;
  }
  /// The raw characters between the quotes.
  std::string_view string() {
    const std::size_t begin = ++at_;
    while (at_ < text_.size() && here() != '"') at_ += here() == '\\' ? 2 : 1;
    const std::string_view content = text_.substr(begin, std::min(at_, text_.size()) - begin);
    ++at_;
    return content;
  }
  void skip_value() {
    int depth = 0;
    do {
      skip_space();
      if (here() == '"') {
        string();
      } else if (here() == '{' || here() == '[') {
        ++depth;
        ++at_;
      } else if (here() == '}' || here() == ']') {
        --depth;
        ++at_;
      } else if (here() == ',' || here() == ':') {
        ++at_;
      } else {
        while (at_ < text_.size() && std::string_view(",:]} \n\t\r").find(here()) == std::string_view::npos)
          ++at_;
      }
      skip_space();
    } while (depth > 0 && at_ < text_.size());
  }

 private:
  std::string_view text_;
  std::size_t at_;
};

std::string unescape_token(std::string_view token) {
  std::string key;
  for (std::size_t index = 0; index < token.size(); ++index) {
    if (token[index] != '~' || index + 1 == token.size()) {
      key += token[index];
    } else {
      key += token[++index] == '1' ? '/' : '~';
    }
  }
  return key;
}

/// The text of a key as it would be written, to compare with what stands there.
std::string raw_key(const std::string& key) {
  const std::string quoted =
      nlohmann::json(key).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return quoted.substr(1, quoted.size() - 2);
}

}  // namespace

std::string json_text(const nlohmann::ordered_json& value) {
  std::string text;
  write(value, 0, 0, text);
  return text + "\n";
}

std::string pointer_token(std::string_view key) {
  std::string token;
  for (char character : key) {
    if (character == '~')
      token += "~0";
    else if (character == '/')
      token += "~1";
    else
      token += character;
  }
  return token;
}

JsonLocator::Place JsonLocator::find(std::string_view pointer) const {
  Scanner scanner(text_, 0);
  scanner.skip_space();
  Place place{scanner.at(), scanner.at()};
  while (!pointer.empty()) {
    pointer.remove_prefix(1);
    const std::string key = unescape_token(pointer.substr(0, pointer.find('/')));
    pointer.remove_prefix(std::min(pointer.find('/'), pointer.size()));
    const bool object = scanner.here() == '{';
    if (!object && scanner.here() != '[') return place;
    const std::string wanted = object ? raw_key(key) : key;
    const char end = object ? '}' : ']';
    scanner.step();
    scanner.skip_space();
    bool found = false;
    for (std::size_t index = 0; scanner.here() != end && scanner.here() != '\0' && !found; ++index) {
      const std::size_t start = scanner.at();
      std::string_view name;
      if (object) {
        name = scanner.string();
        scanner.skip_space();
        scanner.step();
        scanner.skip_space();
      }
      found = object ? name == wanted : std::to_string(index) == wanted;
      if (found) {
        place = {start, scanner.at()};
      } else {
        scanner.skip_value();
        if (scanner.here() == ',') scanner.step();
        scanner.skip_space();
      }
    }
    if (!found) return place;
  }
  return place;
}

SourcePosition JsonLocator::position_of(std::size_t offset) const {
  offset = std::min(offset, text_.size());
  const std::string_view before = text_.substr(0, offset);
  const std::size_t line_start = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  const std::string_view in_line = before.substr(line_start);
  const auto continues = [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U; };
  const auto code_points =
      std::count_if(in_line.begin(), in_line.end(), [&](char byte) { return !continues(byte); });
  return {std::string(file_), static_cast<int>(std::count(before.begin(), before.end(), '\n')) + 1,
          static_cast<int>(code_points) + 1};
}

Diagnostic JsonLocator::at_offset(std::size_t offset, std::size_t length, std::string message) const {
  offset = std::min(offset, text_.size());
  const std::size_t before = text_.substr(0, offset).rfind('\n');
  const std::size_t line_start = before == std::string_view::npos ? 0 : before + 1;
  const std::size_t line_end = std::min(text_.find('\n', offset), text_.size());
  Diagnostic diagnostic;
  diagnostic.position = position_of(offset);
  diagnostic.message = std::move(message);
  diagnostic.source_line = std::string(text_.substr(line_start, line_end - line_start));
  diagnostic.caret_length = static_cast<int>(std::max<std::size_t>(std::min(length, line_end - offset), 1));
  return diagnostic;
}

Diagnostic JsonLocator::at_value(std::string_view pointer, std::string message) const {
  const std::size_t offset = find(pointer).value;
  Scanner scanner(text_, offset);
  const bool structured = scanner.here() == '{' || scanner.here() == '[';
  std::size_t length = 1;
  if (!structured) {
    const std::size_t end = text_.find_first_of(",]}\n", offset);
    length = scanner.here() == '"' ? scanner.string().size() + 2 : std::min(end, text_.size()) - offset;
  }
  return at_offset(offset, length, std::move(message));
}

Diagnostic JsonLocator::at_key(std::string_view pointer, std::string message) const {
  const std::size_t offset = find(pointer).key;
  Scanner scanner(text_, offset);
  const std::size_t length = scanner.here() == '"' ? scanner.string().size() + 2 : 1;
  return at_offset(offset, length, std::move(message));
}

SourcePosition JsonLocator::start_of_string(std::string_view pointer) const {
  return position_of(find(pointer).value + 1);
}

std::string JsonLocator::shown(std::string_view pointer) const {
  constexpr std::size_t longest = 60;
  const std::size_t offset = find(pointer).value;
  Scanner scanner(text_, offset);
  if (scanner.here() == '{') return "an object";
  if (scanner.here() == '[') return "an array";
  scanner.skip_value();
  std::string value(text_.substr(offset, scanner.at() - offset));
  value.erase(value.find_last_not_of(" \n\t\r") + 1);
  if (value.size() > longest) value = value.substr(0, longest) + "…";
  return value;
}

}  // namespace specs
