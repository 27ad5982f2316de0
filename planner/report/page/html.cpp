#include "planner/report/page/html.h"

#include <fmt/format.h>

namespace planner {
namespace {

std::string html_of_facts(const Facts& facts) {
  std::string html;
  for (const Fact& fact : facts.facts) {
    html += fmt::format("<dt>{}</dt><dd>{}", html_escaped(fact.title),
                        html_escaped(format_cell(fact.value, fact.quantity)));
    if (!fact.note.empty()) html += fmt::format(" <span class=\"note\">{}</span>", html_escaped(fact.note));
    html += "</dd>\n";
  }
  return html.empty() ? html : "<dl>\n" + html + "</dl>\n";
}

std::string html_of_notes(const Notes& notes) {
  std::string html;
  for (const std::string& line : notes.lines) html += "<li>" + html_escaped(line) + "</li>\n";
  return html.empty() ? html : "<ul>\n" + html + "</ul>\n";
}

std::string html_of_row(const Table& table, std::size_t number, bool total) {
  const std::vector<Cell>& row = table.rows[number];
  std::string html = total ? "<tr class=\"total\">" : "<tr>";
  for (std::size_t column = 0; column < row.size(); ++column) {
    const Quantity quantity = table.quantity(number, column);
    html += fmt::format("<td{}>{}</td>", quantity == Quantity::text ? "" : " class=\"number\"",
                        html_escaped(format_cell(row[column], quantity)));
  }
  return html + "</tr>\n";
}

/// In a box of its own that scrolls sideways where the window is narrow.
std::string html_of_table(const Table& table) {
  if (table.rows.empty()) return {};
  std::string html = "<div class=\"scroll\" tabindex=\"0\"><table>\n<thead><tr>";
  for (const Column& column : table.columns)
    html +=
        fmt::format("<th scope=\"col\"{}>{}</th>",
                    column.quantity == Quantity::text ? "" : " class=\"number\"", html_escaped(column.title));
  html += "</tr></thead>\n<tbody>\n";
  for (std::size_t row = 0; row < table.rows.size(); ++row)
    html += html_of_row(table, row, table.last_row_is_total && row + 1 == table.rows.size());
  return html + "</tbody></table></div>\n";
}

}  // namespace

std::string html_escaped(std::string_view text) {
  std::string escaped;
  for (const char letter : text) switch (letter) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += letter;
    }
  return escaped;
}

std::string html_of(const Section& section) {
  if (const auto* facts = std::get_if<Facts>(&section)) return html_of_facts(*facts);
  if (const auto* table = std::get_if<Table>(&section)) return html_of_table(*table);
  return html_of_notes(std::get<Notes>(section));
}

std::string html_section(std::string_view id, std::string_view heading, const std::string& content) {
  if (content.empty()) return {};
  return fmt::format("<section id=\"{}\">\n<h2>{}</h2>\n{}</section>\n", id, html_escaped(heading), content);
}

}  // namespace planner
