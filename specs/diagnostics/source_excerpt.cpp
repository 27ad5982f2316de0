#include "specs/diagnostics/source_excerpt.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace specs {

namespace {

constexpr char32_t replacement_character = 0xFFFD;
constexpr int longest_line = 160;  ///< code points shown of one line
constexpr int shown_before_caret = 60;

/// Decodes one code point and moves `at` behind it; a broken sequence gives U+FFFD for one byte.
char32_t next_code_point(std::string_view text, std::size_t& at) {
  const auto byte = [&text](std::size_t index) { return static_cast<std::uint8_t>(text[index]); };
  const std::uint8_t lead = byte(at);
  const int length = lead < 0x80 ? 1 : lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC2 ? 2 : 0;
  if (length == 1) return byte(at++);
  if (length == 0 || lead > 0xF4 || at + static_cast<std::size_t>(length) > text.size()) {
    ++at;
    return replacement_character;
  }
  char32_t value = lead & (0x7F >> length);
  for (int i = 1; i < length; ++i) {
    const std::uint8_t continuation = byte(at + static_cast<std::size_t>(i));
    if ((continuation & 0xC0) != 0x80) {
      ++at;
      return replacement_character;
    }
    value = (value << 6) | (continuation & 0x3F);
  }
  constexpr std::array<char32_t, 5> smallest{0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  if (value < smallest[static_cast<std::size_t>(length)] || value > 0x10FFFF || surrogate) {
    ++at;
    return replacement_character;
  }
  at += static_cast<std::size_t>(length);
  return value;
}

void append_utf8(std::string& out, char32_t value) {
  if (value < 0x80) {
    out += static_cast<char>(value);
  } else if (value < 0x800) {
    out += static_cast<char>(0xC0 | (value >> 6));
    out += static_cast<char>(0x80 | (value & 0x3F));
  } else if (value < 0x10000) {
    out += static_cast<char>(0xE0 | (value >> 12));
    out += static_cast<char>(0x80 | ((value >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (value & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | (value >> 18));
    out += static_cast<char>(0x80 | ((value >> 12) & 0x3F));
    out += static_cast<char>(0x80 | ((value >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (value & 0x3F));
  }
}

bool is_control(char32_t value) {
  const bool c0_or_c1 = value < 0x20 || (value >= 0x7F && value < 0xA0);
  // Bidirectional overrides would show the text in another order than it has.
  const bool reorders = (value >= 0x202A && value <= 0x202E) || (value >= 0x2066 && value <= 0x2069);
  return c0_or_c1 || reorders;
}

std::vector<char32_t> decode(std::string_view text) {
  std::vector<char32_t> points;
  points.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) points.push_back(next_code_point(text, at));
  return points;
}

struct Interval {
  char32_t first;
  char32_t last;
};

/// The ranges that matter in practice of Unicode's combining marks and of East Asian wide characters (UAX
/// 11).
constexpr std::array<Interval, 7> zero_width{{{0x300, 0x36F},
                                              {0x483, 0x489},
                                              {0x591, 0x5BD},
                                              {0x200B, 0x200F},
                                              {0x20D0, 0x20FF},
                                              {0xFE00, 0xFE0F},
                                              {0xFE20, 0xFE2F}}};
constexpr std::array<Interval, 9> double_width{{{0x1100, 0x115F},
                                                {0x2E80, 0x303E},
                                                {0x3041, 0xA4CF},
                                                {0xAC00, 0xD7A3},
                                                {0xF900, 0xFAFF},
                                                {0xFE30, 0xFE6F},
                                                {0xFF00, 0xFF60},
                                                {0x1F300, 0x1FAFF},
                                                {0x20000, 0x3FFFD}}};

int display_width(char32_t value) {
  const auto holds = [value](const Interval& interval) {
    return interval.first <= value && value <= interval.last;
  };
  if (std::any_of(zero_width.begin(), zero_width.end(), holds)) return 0;
  return std::any_of(double_width.begin(), double_width.end(), holds) ? 2 : 1;
}

}  // namespace

SourceExcerpt source_excerpt(std::string_view line, int column, int caret_length) {
  const std::vector<char32_t> points = decode(line);
  const int size = static_cast<int>(points.size());
  const int caret = std::clamp(column - 1, 0, size);
  const int first = size > longest_line ? std::max(0, caret - shown_before_caret) : 0;
  const int end = std::min(size, first + longest_line);

  SourceExcerpt excerpt;
  if (first > 0) excerpt = {"… ", "  "};
  int carets = 0;
  for (int i = first; i < end; ++i) {
    const char32_t point = points[static_cast<std::size_t>(i)];
    const bool tab = point == U'\t';
    append_utf8(excerpt.line, !tab && is_control(point) ? replacement_character : point);
    if (i < caret) {
      excerpt.caret +=
          tab ? std::string("\t") : std::string(static_cast<std::size_t>(display_width(point)), ' ');
    } else if (i < caret + caret_length) {
      carets += tab ? 1 : display_width(point);
    }
  }
  if (end < size) excerpt.line += " …";
  excerpt.caret += std::string(static_cast<std::size_t>(std::max(1, carets)), '^');
  return excerpt;
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char32_t point : decode(text)) {
    const bool layout = point == U'\n' || point == U'\t';
    append_utf8(out, !layout && is_control(point) ? replacement_character : point);
  }
  return out;
}

}  // namespace specs
