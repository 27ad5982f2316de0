// A line of a user's text made fit for a terminal, with the caret line that goes under it.
#pragma once

#include <string>
#include <string_view>

namespace specs {

struct SourceExcerpt {
  std::string line;
  std::string caret;
};

/// `column` counts code points from 1. Tabs are kept in both lines so that the caret stands right whatever
/// the tab width; wide and zero-width characters count as a terminal shows them; a long line is cut around
/// the caret.
SourceExcerpt source_excerpt(std::string_view line, int column, int caret_length);

/// The text with control characters (terminal escapes among them) and broken UTF-8 replaced by U+FFFD.
/// Newlines stay where the text has several lines.
std::string printable(std::string_view text);

}  // namespace specs
