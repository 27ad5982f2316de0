#include "cli/dsplan/output/text.h"

#include <algorithm>
#include <string_view>
#include <vector>

namespace cli {
namespace {

using planner::Facts;
using planner::Notes;
using planner::Quantity;
using planner::Table;

constexpr std::string_view column_gap = "  ";
constexpr int narrowest_wrapped_column = 24;

std::string bold(const std::string& text, const TextStyle& style) {
  return style.colour ? "\033[1m" + text + "\033[0m" : text;
}

std::string dim(const std::string& text, const TextStyle& style) {
  return style.colour ? "\033[2m" + text + "\033[0m" : text;
}

std::string padded(const std::string& text, int width, bool right) {
  const std::string space(static_cast<std::size_t>(std::max(0, width - display_width(text))), ' ');
  return right ? space + text : text + space;
}

/// Splits at spaces so that no line is wider than `width`, unless a single word is.
std::vector<std::string> wrapped(const std::string& text, int width) {
  std::vector<std::string> lines(1);
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    at = end + 1;
    if (!lines.back().empty() && display_width(lines.back()) + 1 + display_width(word) > width)
      lines.emplace_back();
    if (!lines.back().empty()) lines.back() += ' ';
    lines.back() += word;
  }
  return lines;
}

void trim_right(std::string& text) { text.erase(text.find_last_not_of(' ') + 1); }

void render_title(const std::string& title, const TextStyle& style, std::string& out) {
  if (title.empty()) return;
  if (!out.empty()) out += '\n';
  out += bold(title, style) + '\n';
}

void render(const Facts& facts, const TextStyle& style, std::string& out) {
  render_title(facts.title, style, out);
  int label_width = 0;
  for (const auto& fact : facts.facts) label_width = std::max(label_width, display_width(fact.title));
  const std::string indent(static_cast<std::size_t>(label_width) + 4, ' ');
  for (const auto& fact : facts.facts) {
    std::string value = planner::format_cell(fact.value, fact.quantity);
    if (!fact.note.empty()) value += (value.empty() ? "" : "  ") + fact.note;
    const auto lines = wrapped(value, std::max(narrowest_wrapped_column, style.width - label_width - 4));
    out += "  " + dim(padded(fact.title, label_width, false), style) + "  " + lines[0] + '\n';
    for (std::size_t line = 1; line < lines.size(); ++line) out += indent + lines[line] + '\n';
  }
}

void render(const Notes& notes, const TextStyle& style, std::string& out) {
  if (notes.lines.empty()) return;
  render_title(notes.title, style, out);
  for (const std::string& note : notes.lines) {
    const auto lines = wrapped(note, style.width - 4);
    for (std::size_t line = 0; line < lines.size(); ++line)
      out += (line == 0 ? "  - " : "    ") + lines[line] + '\n';
  }
}

bool right_aligned(const Table& table, std::size_t column) {
  return table.columns[column].quantity != Quantity::text || (column > 0 && !table.row_quantities.empty());
}

/// Widths of the columns; the last text column gives way where the table is wider than the style allows.
std::vector<int> column_widths(const Table& table, const std::vector<std::vector<std::string>>& cells,
                               const TextStyle& style) {
  std::vector<int> widths;
  int total = 2 - static_cast<int>(column_gap.size());
  for (std::size_t column = 0; column < table.columns.size(); ++column) {
    int width = display_width(table.columns[column].title);
    for (const auto& row : cells) width = std::max(width, display_width(row[column]));
    widths.push_back(width);
    total += width + static_cast<int>(column_gap.size());
  }
  for (std::size_t column = table.columns.size(); column-- > 0 && total > style.width;) {
    if (right_aligned(table, column)) continue;
    const int narrowest = std::min(
        widths[column], std::max(narrowest_wrapped_column, display_width(table.columns[column].title)));
    const int narrowed = std::max(narrowest, widths[column] - (total - style.width));
    total -= widths[column] - narrowed;
    widths[column] = narrowed;
  }
  return widths;
}

void render_row(const Table& table, const std::vector<int>& widths, const std::vector<std::string>& cells,
                std::string& out) {
  std::vector<std::vector<std::string>> lines;
  std::size_t height = 1;
  for (std::size_t column = 0; column < cells.size(); ++column) {
    lines.push_back(wrapped(cells[column], widths[column]));
    height = std::max(height, lines.back().size());
  }
  for (std::size_t line = 0; line < height; ++line) {
    std::string text = "  ";
    for (std::size_t column = 0; column < cells.size(); ++column) {
      if (column > 0) text += column_gap;
      const std::string cell = line < lines[column].size() ? lines[column][line] : std::string();
      text += padded(cell, widths[column], right_aligned(table, column));
    }
    trim_right(text);
    out += text + '\n';
  }
}

void render(const Table& table, const TextStyle& style, std::string& out) {
  if (table.rows.empty()) return;
  render_title(table.title, style, out);
  std::vector<std::vector<std::string>> cells;
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    cells.emplace_back();
    for (std::size_t column = 0; column < table.rows[row].size(); ++column)
      cells.back().push_back(planner::format_cell(table.rows[row][column], table.quantity(row, column)));
  }
  const std::vector<int> widths = column_widths(table, cells, style);
  std::vector<std::string> titles;
  int rule = 0;
  for (std::size_t column = 0; column < table.columns.size(); ++column) {
    titles.push_back(table.columns[column].title);
    rule += widths[column] + (column > 0 ? static_cast<int>(column_gap.size()) : 0);
  }
  std::string header;
  render_row(table, widths, titles, header);
  out += style.colour ? dim(header.substr(0, header.size() - 1), style) + '\n' : header;
  const std::string line = "  " + std::string(static_cast<std::size_t>(rule), '-') + '\n';
  out += line;
  for (std::size_t row = 0; row < cells.size(); ++row) {
    if (table.last_row_is_total && row + 1 == cells.size()) out += line;
    render_row(table, widths, cells[row], out);
  }
}

}  // namespace

int display_width(const std::string& text) {
  return static_cast<int>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string render_text(const planner::Report& report, const TextStyle& style) {
  std::string out;
  for (const auto& section : report.sections)
    std::visit([&](const auto& content) { render(content, style, out); }, section);
  return out;
}

}  // namespace cli
