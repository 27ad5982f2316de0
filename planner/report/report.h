// What a command has to say, as data: facts, tables and notes. The command line renders it as text for
// people or as JSON for programs; the numbers are the same, unrounded in JSON and under their unit's key.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "planner/wording/quantity.h"

namespace planner {

/// Empty, a text, an exact count, or a number in the base unit of its quantity.
using Cell = std::variant<std::monostate, std::string, std::int64_t, double>;

struct Column {
  std::string key;    ///< JSON key, ends in the unit ("step_seconds")
  std::string title;  ///< what people read
  Quantity quantity = Quantity::text;
};

struct Table {
  std::string key;
  std::string title;
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;  ///< each as long as `columns`
  bool last_row_is_total = false;
  std::vector<Quantity> row_quantities;  ///< of the columns without one, where rows differ; else empty

  Quantity quantity(std::size_t row, std::size_t column) const;
};

struct Fact {
  std::string key;
  std::string title;
  Quantity quantity = Quantity::text;
  Cell value;
  std::string note;  ///< printed behind the value
};

struct Facts {
  std::string key;
  std::string title;
  std::vector<Fact> facts;
};

struct Notes {
  std::string key;
  std::string title;
  std::vector<std::string> lines;
};

using Section = std::variant<Facts, Table, Notes>;

struct Report {
  std::vector<Section> sections;
};

/// The cell as people read it; empty for an empty cell.
std::string format_cell(const Cell& cell, Quantity quantity);

}  // namespace planner
