// Tables of published measurements as read from a CSV file.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace published {

class Row {
 public:
  Row(const std::unordered_map<std::string, std::size_t>& columns, std::vector<std::string> cells)
      : columns_(&columns), cells_(std::move(cells)) {}
  /// Empty where the column is absent or the cell is.
  std::string_view text(std::string_view column) const;
  bool has(std::string_view column) const { return !text(column).empty(); }
  /// `fallback` where the cell is empty or no number.
  double number(std::string_view column, double fallback = 0) const;
  std::int64_t integer(std::string_view column, std::int64_t fallback = 0) const;

 private:
  const std::unordered_map<std::string, std::size_t>* columns_;
  std::vector<std::string> cells_;
};

struct Table {
  std::unordered_map<std::string, std::size_t> columns;
  std::vector<Row> rows;
  Table() = default;
  Table(const Table&) = delete;  // rows refer to `columns`
};

/// RFC 4180 with a header line. Throws std::runtime_error where the file cannot be read or a line has another
/// number of cells than the header.
void read_table(const std::filesystem::path& path, Table& table);

}  // namespace published
