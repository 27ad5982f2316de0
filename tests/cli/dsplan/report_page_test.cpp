// The page of `dsplan report`: complete and self-contained as text, and in a real browser free of errors,
// overlaps, sideways scrolling and unreadable colours. Without a browser the latter are skipped;
// `script/bootstrap --browser` installs one.
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <regex>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/dsplan/application.h"
#include "tests/support/golden_file.h"
#include "tests/support/run_program.h"
#include "tests/support/temporary_folder.h"

namespace cli {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

/// The page of a plan with several ranks, runners-up, advice and a run's length; made once.
class ReportPage : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<tests::TemporaryFolder>();
    folder_->write("a.toml", R"(
name = "a <b> & \"c\""
[model]
preset = "llama2-7b"
[cluster]
node = "dgx-a100-40gb"
nodes = 4
network = "ethernet-25g"
storage = "nfs"
[training]
global_batch = 64
sequence_length = 2048
stack = "megatron-core"
tokens = 1e12
[search]
pipeline = [4]
)");
    run({"plan", path("a.toml"), "-o", path("plan.json")});
    run({"report", path("plan.json"), "-o", path("page.html")});
    run({"compile", path("a.toml"), "-o", path("plans"), "--set", "sweep={\"cluster.nodes\"=[2,4,8]}"});
  }
  static void TearDownTestSuite() { folder_.reset(); }

  static std::string path(const std::string& name) { return (folder_->path() / name).string(); }
  static int run(const std::vector<std::string>& arguments) {
    std::ostringstream out, err;
    const int code = run_dsplan(arguments, out, err, TextStyle{});
    EXPECT_EQ(code, 0) << out.str() << err.str();
    return code;
  }
  static std::string page() { return tests::file_text(path("page.html")); }

 private:
  static inline std::unique_ptr<tests::TemporaryFolder> folder_;
};

TEST_F(ReportPage, HoldsEverythingAndNeedsNoNetwork) {
  const std::string html = page();
  for (const char* id : {"what", "timeline-section", "time", "memory", "front", "certificate", "advice"})
    EXPECT_THAT(html, HasSubstr(std::string("<section id=\"") + id + "\">"));
  EXPECT_THAT(html, HasSubstr("default-src 'none'"));
  for (const char* from_elsewhere : {"src=", "href=", "http://", "https://", "@import", "url("})
    EXPECT_THAT(html, Not(HasSubstr(from_elsewhere)));
  EXPECT_THAT(html, HasSubstr("NCCL_ALGO"));
}

TEST_F(ReportPage, EscapesWhatTheUserWrote) {
  EXPECT_THAT(page(), HasSubstr("<h1>Plan of a &lt;b&gt; &amp; &quot;c&quot;</h1>"));
  EXPECT_THAT(page(), Not(HasSubstr("a <b>")));
}

TEST_F(ReportPage, DrawsEachTaskOfTheSimulation) {
  const std::string html = page();
  const std::regex data("id=\"timeline-data\">([^<]*)<");
  std::smatch found;
  ASSERT_TRUE(std::regex_search(html, found, data));
  const auto timeline = nlohmann::json::parse(found[1].str());
  ASSERT_EQ(timeline.at("ranks").size(), 4u);
  std::ostringstream out, err;
  ASSERT_EQ(run_dsplan({"simulate", path("plan.json"), "--format", "json"}, out, err, TextStyle{}), 0);
  const auto simulation = nlohmann::json::parse(out.str());
  EXPECT_NEAR(timeline.at("total").get<double>() * 1e-7,
              simulation.at("simulation").at("simulated_step_seconds").get<double>(), 1e-6);
  for (std::size_t rank = 0; rank < 4; ++rank) {
    const auto& of_rank = timeline.at("ranks")[rank];
    const auto& run = of_rank.at("compute");
    double busy = of_rank.at("update").get<double>() * 1e-7;
    for (std::size_t i = 0; i < run.size(); i += 5) busy += run[i + 1].get<double>() * 1e-7;
    EXPECT_NEAR(busy, simulation.at("pipeline_ranks")[rank].at("busy_seconds").get<double>(), 1e-4);
  }
}

TEST_F(ReportPage, ShowsTheFrontOfASweepWhereOneIsGiven) {
  run({"report", path("plans/point-1.json"), "-o", path("sweep.html"), "--sweep", path("plans")});
  const std::string html = tests::file_text(path("sweep.html"));
  EXPECT_THAT(html, HasSubstr("The points of the sweep"));
  EXPECT_THAT(html, HasSubstr("<td>point-3</td>"));
  std::ostringstream out, err;
  EXPECT_EQ(
      run_dsplan({"report", path("plans/point-1.json"), "--sweep", path("nowhere")}, out, err, TextStyle{}),
      2);
  EXPECT_FALSE(fs::exists("report.html"));
}

std::string browser() {
  for (const char* name : {"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"})
    if (std::system((std::string("command -v ") + name + " >/dev/null 2>&1").c_str()) == 0) return name;
  return {};
}

/// Runs in the page, once it has drawn, and leaves what it finds in an element of its own.
constexpr const char* examination = R"js(<script>
"use strict";
const findings = [];
const say = (words) => findings.push(words);
window.addEventListener("error", (event) => say("error: " + event.message));
window.addEventListener("load", () => {
  for (const details of document.querySelectorAll("details")) details.open = true;
  const page = document.documentElement;
  if (page.scrollWidth > page.clientWidth) say("scrolls sideways: " + page.scrollWidth + " > " + page.clientWidth);
  if (performance.getEntriesByType("resource").length > 0) say("loads something");

  const canvas = document.getElementById("timeline");
  const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  const colours = new Set();
  for (let i = 0; i < pixels.length; i += 4) if (pixels[i + 3] === 255) colours.add(pixels[i] + "," + pixels[i + 1] + "," + pixels[i + 2]);
  if (!(Number(canvas.dataset.drawn) > 0)) say("no task is drawn");
  if (colours.size < 4) say("the timeline has " + colours.size + " colours");
  const before = canvas.dataset.drawn;
  document.querySelector("button[data-zoom=in]").click();
  document.querySelector("button[data-zoom=in]").click();
  if (!(Number(canvas.dataset.drawn) < Number(before))) say("closer shows no fewer tasks");
  document.querySelector("button[data-zoom=all]").click();
  if (canvas.dataset.drawn !== before) say("the whole step is not what it was");
  const box = canvas.getBoundingClientRect();
  canvas.dispatchEvent(new PointerEvent("pointermove", { clientX: box.left + box.width * 0.4, clientY: box.top + 40 }));
  if (!document.getElementById("pointed").textContent.startsWith("pipeline rank ")) say("pointing says nothing");

  const texts = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode, parent = node.parentElement;
    if (!node.textContent.trim() || ["SCRIPT", "STYLE", "TITLE", "title"].includes(parent.tagName)) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const rect of range.getClientRects())
      texts.push({ words: node.textContent.trim(), parent, left: rect.left + 1, right: rect.right - 1, top: rect.top + 3, bottom: rect.bottom - 3 });
  }
  if (texts.length < 100) say("only " + texts.length + " texts");
  for (let i = 0; i < texts.length; ++i)
    for (let j = i + 1; j < texts.length; ++j) {
      const a = texts[i], b = texts[j];
      if (a.parent.closest(".scroll") !== b.parent.closest(".scroll")) continue;  // cut off by its own box
      if (a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom)
        say("overlap: \"" + a.words + "\" and \"" + b.words + "\"");
    }

  const luminance = (colour) => {
    const [r, g, b] = colour.match(/[\d.]+/g).map((part) => { const c = part / 255; return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = luminance(getComputedStyle(document.body).backgroundColor);
  for (const selector of ["h1", ".note", "th", "td", "dt", ".legend li", "summary", "button"]) {
    const element = document.querySelector(selector);
    const ink = luminance(getComputedStyle(element).color);
    const contrast = (Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05);
    if (contrast < 4.5) say(selector + " has a contrast of " + contrast.toFixed(1));
  }
  const result = document.createElement("pre");
  result.id = "findings";
  result.textContent = JSON.stringify({ dark: ground < 0.2, width: page.clientWidth, findings });
  document.body.append(result);
});
</script></body>)js";

struct Window {
  int width;
  bool dark;
};

std::ostream& operator<<(std::ostream& out, const Window& window) {
  return out << window.width << (window.dark ? " dark" : " light");
}

class ReportPageInABrowser : public ReportPage, public ::testing::WithParamInterface<Window> {};

TEST_P(ReportPageInABrowser, HasNoErrorNoOverlapAndReadableColours) {
  const std::string program = browser();
  if (program.empty()) GTEST_SKIP() << "no browser here; script/bootstrap --browser installs one";
  std::string html = page();
  html.replace(html.rfind("</body>"), std::string("</body>").size(), examination);
  std::ofstream(path("examined.html")) << html;
  const Window window = GetParam();
  const tests::ProgramRun run = tests::run_program(
      program + " --headless --no-sandbox --disable-gpu --user-data-dir=" + path("profile") +
      " --blink-settings=preferredColorScheme=" + (window.dark ? "0" : "1") +
      " --window-size=" + std::to_string(window.width) +
      ",900 --virtual-time-budget=5000 --dump-dom file://" + path("examined.html"));
  std::smatch found;
  const std::regex result("<pre id=\"findings\">([^<]*)</pre>");
  ASSERT_TRUE(std::regex_search(run.out, found, result)) << run.out.substr(0, 500) << run.err;
  const auto seen = nlohmann::json::parse(std::regex_replace(found[1].str(), std::regex("&quot;"), "\""));
  EXPECT_EQ(seen.at("dark"), window.dark);
  EXPECT_GT(seen.at("width").get<int>(), window.width - 20) << "but for a scroll bar";
  EXPECT_TRUE(seen.at("findings").empty()) << seen.at("findings").dump(1);
}

INSTANTIATE_TEST_SUITE_P(Windows, ReportPageInABrowser,
                         ::testing::Values(Window{1280, false}, Window{1280, true}, Window{360, false},
                                           Window{768, true}));

}  // namespace
}  // namespace cli
