#include "tests/published/csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace published {
namespace {

void trim(std::string& cell) {
  constexpr std::string_view blanks = " \t";
  cell.erase(cell.find_last_not_of(blanks) + 1);
  cell.erase(0, std::min(cell.find_first_not_of(blanks), cell.size()));
}

/// Cells of the record that starts at `position`, which moves behind its line end.
std::vector<std::string> next_record(std::string_view text, std::size_t& position, bool& open_quote) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  while (position < text.size()) {
    const char c = text[position++];
    if (quoted) {
      if (c != '"')
        cells.back() += c;
      else if (position < text.size() && text[position] == '"')
        cells.back() += text[position++];
      else
        quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == ',') {
      cells.emplace_back();
    } else if (c == '\n') {
      break;
    } else if (c != '\r') {
      cells.back() += c;
    }
  }
  open_quote = quoted;
  for (std::string& cell : cells) trim(cell);
  return cells;
}

}  // namespace

std::string_view Row::text(std::string_view column) const {
  const auto found = columns_->find(std::string(column));
  return found == columns_->end() ? std::string_view{} : std::string_view(cells_[found->second]);
}

double Row::number(std::string_view column, double fallback) const {
  const std::string_view cell = text(column);
  double value = fallback;
  const auto result = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  return cell.empty() || result.ec != std::errc{} ? fallback : value;
}

std::int64_t Row::integer(std::string_view column, std::int64_t fallback) const {
  return static_cast<std::int64_t>(number(column, static_cast<double>(fallback)));
}

void read_table(const std::filesystem::path& path, Table& table) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw std::runtime_error("cannot read " + path.string());
  std::stringstream buffer;
  buffer << stream.rdbuf();
  const std::string whole = buffer.str();
  std::string_view text = whole;
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  std::size_t position = 0;
  bool open_quote = false;
  const std::vector<std::string> header = next_record(text, position, open_quote);
  if (header.size() == 1 && header.front().empty()) throw std::runtime_error(path.string() + " is empty");
  for (std::size_t i = 0; i < header.size(); ++i)
    if (!table.columns.emplace(header[i], i).second)
      throw std::runtime_error(path.string() + ": column " + header[i] + " stands twice in the header");
  std::size_t record = 1;
  while (position < text.size() && !open_quote) {
    std::vector<std::string> cells = next_record(text, position, open_quote);
    ++record;
    if (cells.size() == 1 && cells.front().empty()) continue;
    if (cells.size() != header.size() && !open_quote)
      throw std::runtime_error(path.string() + ": record " + std::to_string(record) + " has " +
                               std::to_string(cells.size()) + " cells, the header " +
                               std::to_string(header.size()));
    table.rows.emplace_back(table.columns, std::move(cells), record);
  }
  if (open_quote)
    throw std::runtime_error(path.string() + ": record " + std::to_string(record) +
                             " has a quote that is never closed");
}

void need_columns(const std::filesystem::path& path, const Table& table,
                  std::initializer_list<std::string_view> columns) {
  std::string missing;
  for (const std::string_view column : columns)
    if (!table.columns.contains(std::string(column)))
      missing += (missing.empty() ? "" : ", ") + std::string(column);
  if (!missing.empty()) throw std::runtime_error(path.string() + " lacks the column(s) " + missing);
}

std::string wrong_number(const Row& row, std::initializer_list<std::string_view> columns) {
  constexpr double most = 1e9;  // far above any size, time or count
  for (const std::string_view column : columns) {
    const std::string_view cell = row.text(column);
    if (cell.empty()) continue;
    double value = 0;
    const auto result = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    if (result.ec == std::errc{} && result.ptr == cell.data() + cell.size() && std::abs(value) < most)
      continue;
    return "record " + std::to_string(row.record()) + ", column " + std::string(column) + ": \"" +
           std::string(cell.substr(0, 40)) + "\" is no finite number below 10^9";
  }
  return {};
}

}  // namespace published
