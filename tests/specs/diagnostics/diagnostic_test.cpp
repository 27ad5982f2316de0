#include "specs/diagnostics/diagnostic.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "specs/diagnostics/source_excerpt.h"

namespace specs {
namespace {

Diagnostic example() {
  Diagnostic diagnostic;
  diagnostic.position = {"spec.toml", 12, 9};
  diagnostic.message = "model.heads 52 % tensor 8 = 4";
  diagnostic.source_line = "tensor = 8";
  diagnostic.caret_length = 1;
  return diagnostic;
}

TEST(Diagnostic, PointsAtItsPlace) {
  Diagnostic diagnostic = example();
  diagnostic.position.column = 10;
  diagnostic.expected = "a divisor of 52";
  diagnostic.seen = "8";
  diagnostic.remedy = "tensor may be 1, 2, 4, 13";
  EXPECT_EQ(render(diagnostic),
            "spec.toml:12:10: error: model.heads 52 % tensor 8 = 4\n"
            "   12 | tensor = 8\n"
            "      |          ^\n"
            "  expected: a divisor of 52\n"
            "  saw: 8\n"
            "  remedy: tensor may be 1, 2, 4, 13\n");
}

TEST(Diagnostic, WithoutAPlaceIsItsMessage) {
  Diagnostic diagnostic;
  diagnostic.severity = Severity::note;
  diagnostic.message = "nothing to see";
  EXPECT_EQ(render(diagnostic), "note: nothing to see\n");
}

TEST(Diagnostic, ShowsNoControlCharacters) {
  Diagnostic diagnostic = example();
  diagnostic.message = "bad \x1b[31m text \xff";
  diagnostic.source_line = "tensor \x1b]0;title\x07 = 8";
  const std::string text = render(diagnostic);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(text.find('\xff'), std::string::npos);
}

TEST(SourceExcerpt, CountsCodePointsTabsAndWideCharacters) {
  EXPECT_EQ(source_excerpt("größe = 3", 9, 1).caret, "        ^");
  EXPECT_EQ(source_excerpt("\tx = 3", 6, 1).caret, "\t    ^");
  EXPECT_EQ(source_excerpt("学习 = 3", 6, 1).caret, "       ^") << "two columns each";
  EXPECT_EQ(source_excerpt("e\xCC\x81 = 3", 6, 1).caret, "    ^") << "a combining accent has no column";
  EXPECT_EQ(source_excerpt("x = \"学习\"", 5, 4).caret, "    ^^^^^^");
}

TEST(SourceExcerpt, CutsLongLinesAroundTheCaret) {
  const std::string line = std::string(500, 'a') + "X" + std::string(500, 'b');
  const SourceExcerpt excerpt = source_excerpt(line, 501, 1);
  EXPECT_LT(excerpt.line.size(), 200U);
  const std::size_t at = excerpt.caret.find('^');
  // The ellipsis takes three bytes and one column.
  EXPECT_EQ(excerpt.line[at + 2], 'X');
}

TEST(SourceExcerpt, BearsAnyColumn) {
  for (const int column : {-5, 0, 1, 4, 1000})
    EXPECT_NE(source_excerpt("abc", column, 3).caret.find('^'), std::string::npos);
  EXPECT_EQ(source_excerpt("", 1, 0).caret, "^");
}

TEST(Diagnostics, SortByPlaceAndKeepTheOrderOfEquals) {
  Diagnostics diagnostics;
  diagnostics.error({"b", 1, 1}, "4");
  diagnostics.error({"a", 10, 1}, "3");
  diagnostics.warning({"a", 2, 5}, "1");
  diagnostics.error({"a", 2, 5}, "2");
  diagnostics.sort_by_position();
  std::string order;
  for (const Diagnostic& entry : diagnostics.entries()) order += entry.message;
  EXPECT_EQ(order, "1234");
  EXPECT_TRUE(diagnostics.has_errors());
}

TEST(Diagnostics, OfWarningsAreNoErrors) {
  Diagnostics diagnostics;
  diagnostics.warning({}, "careful");
  EXPECT_FALSE(diagnostics.has_errors());
  EXPECT_FALSE(diagnostics.empty());
}

TEST(NearestName, FindsTyposAndSwappedLetters) {
  const std::vector<std::string> known{"heads",    "hidden",        "layers",
                                       "kv_heads", "gradient_clip", "h100-sxm-80gb"};
  EXPECT_EQ(nearest_name("haeds", known), "heads");
  EXPECT_EQ(nearest_name("hiden", known), "hidden");
  EXPECT_EQ(nearest_name("gradient_cliping", known), "gradient_clip");
  EXPECT_EQ(nearest_name("h100", known), "h100-sxm-80gb");
  EXPECT_EQ(nearest_name("optimizer", known), std::nullopt);
  EXPECT_EQ(nearest_name("", known), std::nullopt);
  EXPECT_EQ(nearest_name(std::string(100000, 'x'), known), std::nullopt);
  EXPECT_EQ(nearest_name("x", {"y"}), std::nullopt) << "nothing in common";
}

}  // namespace
}  // namespace specs
