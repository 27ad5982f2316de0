#include "planner/report/report.h"

namespace planner {

Quantity Table::quantity(std::size_t row, std::size_t column) const {
  const Quantity of_column = columns[column].quantity;
  return of_column == Quantity::text && column > 0 && row < row_quantities.size() ? row_quantities[row]
                                                                                  : of_column;
}

std::string format_cell(const Cell& cell, Quantity quantity) {
  if (const auto* text = std::get_if<std::string>(&cell)) return *text;
  if (const auto* count = std::get_if<std::int64_t>(&cell)) {
    if (quantity == Quantity::text || quantity == Quantity::count) return format_count(*count);
    return format_quantity(quantity, static_cast<double>(*count));
  }
  if (const auto* number = std::get_if<double>(&cell)) return format_quantity(quantity, *number);
  return {};
}

}  // namespace planner
