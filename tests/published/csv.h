// Tables of published measurements as read from a CSV file.
#pragma once

#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace published {

class Row {
 public:
  Row(const std::unordered_map<std::string, std::size_t>& columns, std::vector<std::string> cells,
      std::size_t record = 0)
      : columns_(&columns), cells_(std::move(cells)), record_(record) {}
  /// Empty where the column is absent or the cell is.
  std::string_view text(std::string_view column) const;
  bool has(std::string_view column) const { return !text(column).empty(); }
  /// `fallback` where the cell is empty or no number.
  double number(std::string_view column, double fallback = 0) const;
  std::int64_t integer(std::string_view column, std::int64_t fallback = 0) const;
  std::size_t record() const { return record_; }  ///< in the file, the header being 1

 private:
  const std::unordered_map<std::string, std::size_t>* columns_;
  std::vector<std::string> cells_;
  std::size_t record_ = 0;
};

struct Table {
  std::unordered_map<std::string, std::size_t> columns;
  std::vector<Row> rows;
  Table() = default;
  Table(const Table&) = delete;  // rows refer to `columns`
};

/// RFC 4180 with a header line; CRLF, a byte-order mark, blank lines and blanks around a cell are fine.
/// Throws std::runtime_error where the file cannot be read, is empty, has a quote that is never closed, a
/// column twice, or a record with another number of cells than the header.
void read_table(const std::filesystem::path& path, Table& table);

/// Throws std::runtime_error where the table lacks one of `columns`, naming all that it lacks.
void need_columns(const std::filesystem::path& path, const Table& table,
                  std::initializer_list<std::string_view> columns);

/// The first cell of `columns` that is neither empty nor a finite number below 10^9, as a reason; empty where
/// there is none.
std::string wrong_number(const Row& row, std::initializer_list<std::string_view> columns);

}  // namespace published
