#include <string>

#include <gtest/gtest.h>

#include "specs/language/catalog.h"
#include "specs/language/key_reader.h"
#include "specs/language/key_writer.h"
#include "specs/language/read_experiment.h"
#include "specs/language/section_keys.h"
#include "specs/language/value_tree.h"
#include "specs/language/write_experiment.h"
#include "tests/specs/language/random_filler.h"

namespace specs {
namespace {

/// Writes, reads back without the checks between keys, and compares; returns what was written.
template <class Section>
void expect_round_trip(Section written, Section fresh) {
  KeyWriter writer;
  visit_keys(writer, written);
  const auto document = parse_toml(writer.text(), "written");
  ASSERT_TRUE(document) << document.diagnostics.render() << writer.text();
  ReadState state;
  KeyReader reader(*document, "", state);
  visit_keys(reader, fresh);
  reader.refuse_unknown_keys();
  EXPECT_TRUE(state.diagnostics.empty()) << state.diagnostics.render();
  EXPECT_EQ(fresh, written) << writer.text();
}

TEST(RoundTrip, AnyExperimentReadsBackAsItWasWritten) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    tests::RandomFiller filler(seed);
    Experiment experiment;
    experiment.cluster.groups.resize(seed % 3 == 0 ? 1 : 3);
    visit_keys(filler, experiment);
    if (experiment.cluster.groups.empty()) continue;
    Experiment fresh;
    fresh.model = starting_model();
    expect_round_trip(experiment, fresh);
  }
}

TEST(RoundTrip, AnyProbeReadsBackAsItWasWritten) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    tests::RandomFiller filler(seed);
    LocalhostProbe probe;
    visit_keys(filler, probe);
    expect_round_trip(probe, LocalhostProbe{});
  }
}

TEST(RoundTrip, EveryCatalogModelOnEveryNodeResolvesAndReadsBack) {
  for (const std::string& model : catalog_names(CatalogKind::model))
    for (const std::string node : {"dgx-h100", "gb200-nvl72", "localhost"}) {
      SCOPED_TRACE(model + " on " + node);
      const std::string text = "model = \"" + model + "\"\ncluster.node = \"" + node + "\"\n";
      const auto experiment = read_experiment_text(text, "text.toml");
      ASSERT_TRUE(experiment) << experiment.diagnostics.render();
      const auto again = read_experiment_text(write_experiment_toml(*experiment), "text.toml");
      ASSERT_TRUE(again) << again.diagnostics.render();
      EXPECT_EQ(*again, *experiment);
    }
}

TEST(RoundTrip, ASweepReadsBackAsItWasWritten) {
  const auto experiment = read_experiment_text(R"(
model = "gpt2-xl"
cluster.node = "dgx-a100-80gb"
[sweep]
"cluster.nodes" = [1, 2, 4]
"training.precision" = ["bf16", "fp32"]
"training.optimizer" = [{ type = "sgd" }, { type = "adamw" }]
)",
                                               "sweep.toml");
  ASSERT_TRUE(experiment) << experiment.diagnostics.render();
  ASSERT_EQ(experiment->sweep.size(), 3U);
  const auto again = read_experiment_text(write_experiment_toml(*experiment), "sweep.toml");
  ASSERT_TRUE(again) << again.diagnostics.render();
  EXPECT_EQ(*again, *experiment);
}

}  // namespace
}  // namespace specs
