// Pieces of HTML: escaped text, and the sections of a report as elements.
#pragma once

#include <string>
#include <string_view>

#include "planner/report/report.h"

namespace planner {

/// Safe between tags and inside a quoted attribute.
std::string html_escaped(std::string_view text);

/// A definition list, a table or a list, without a heading; empty where the section holds nothing.
std::string html_of(const Section& section);

/// `<section id=…>` with a heading; empty where `content` is.
std::string html_section(std::string_view id, std::string_view heading, const std::string& content);

}  // namespace planner
