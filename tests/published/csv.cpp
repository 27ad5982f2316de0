#include "tests/published/csv.h"

#include <charconv>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace published {
namespace {

/// Cells of the record that starts at `position`, which moves behind its line end.
std::vector<std::string> next_record(std::string_view text, std::size_t& position) {
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
  const std::string text = buffer.str();
  std::size_t position = 0;
  const std::vector<std::string> header = next_record(text, position);
  for (std::size_t i = 0; i < header.size(); ++i) table.columns[header[i]] = i;
  while (position < text.size()) {
    std::vector<std::string> cells = next_record(text, position);
    if (cells.size() == 1 && cells.front().empty()) continue;
    if (cells.size() != header.size())
      throw std::runtime_error(path.string() + ": record " + std::to_string(table.rows.size() + 2) + " has " +
                               std::to_string(cells.size()) + " cells, the header " +
                               std::to_string(header.size()));
    table.rows.emplace_back(table.columns, std::move(cells));
  }
}

}  // namespace published
