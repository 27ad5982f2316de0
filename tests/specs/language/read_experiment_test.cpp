#include "specs/language/read_experiment.h"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "specs/language/write_experiment.h"
#include "tests/support/golden_file.h"

namespace specs {
namespace {

constexpr const char* small = R"(
[model]
preset = "gpt2-small"
[cluster]
node = "dgx-a100-80gb"
nodes = 2
)";

Experiment read_good(const std::string& text, const std::vector<std::string>& overrides = {}) {
  const auto experiment = read_experiment_text(text, "spec.toml", overrides);
  EXPECT_TRUE(experiment) << experiment.diagnostics.render();
  return experiment ? *experiment : Experiment{};
}

std::string errors_of(const std::string& text, const std::vector<std::string>& overrides = {}) {
  const auto experiment = read_experiment_text(text, "spec.toml", overrides);
  EXPECT_FALSE(experiment);
  return experiment.diagnostics.render();
}

TEST(ReadExperiment, AModelOfTheWrongTypeIsOneError) {
  for (const char* setting : {"model=3", "model.preset=3"}) {
    const std::string errors = errors_of(small, {setting});
    EXPECT_NE(errors.find("the name of a model"), std::string::npos) << errors;
    EXPECT_EQ(errors.find("lacks"), std::string::npos) << errors;
  }
}

TEST(ReadExperiment, TheWordOfOtherToolsForAMixtureIsAnsweredWithOurs) {
  const std::string errors = errors_of(small, {"model.moe.experts=8"});
  EXPECT_NE(errors.find("mixture"), std::string::npos) << errors;
}

TEST(ReadExperiment, TheGpt3ExampleResolvesToItsGoldenFile) {
  const auto experiment = read_experiment("examples/gpt3-175b.toml");
  ASSERT_TRUE(experiment) << experiment.diagnostics.render();
  EXPECT_TRUE(experiment.diagnostics.empty()) << experiment.diagnostics.render();
  EXPECT_EQ(experiment->cluster.devices(), 1024);
  EXPECT_EQ(experiment->training.global_batch, 1536);
  EXPECT_EQ(experiment->training.sequence_length, 2048);
  tests::expect_golden("tests/golden/specs/gpt3-175b.resolved", write_experiment_toml(*experiment));
}

TEST(ReadExperiment, TheQuickstartIsATinyByteModelOnTwoCores) {
  const auto experiment = read_experiment("examples/quickstart.toml");
  ASSERT_TRUE(experiment) << experiment.diagnostics.render();
  EXPECT_EQ(experiment->model.vocabulary, 256);
  EXPECT_EQ(experiment->cluster.devices(), 2);
  EXPECT_EQ(experiment->training.precision, Precision::fp32);
  EXPECT_EQ(experiment->training.dropout, 0);
  EXPECT_LE(experiment->training.optimizer.learning_rate, 1e-3);
}

TEST(ReadExperiment, DefaultsFollowFromOtherKeys) {
  const Experiment experiment = read_good(R"(
[model]
family = "llama"
layers = 4
hidden = 1024
heads = 16
[cluster]
node = "dgx-h100"
)");
  EXPECT_EQ(experiment.name, "spec");
  EXPECT_EQ(experiment.model.attention.kv_heads, 16);
  EXPECT_EQ(experiment.model.attention.head_dim, 64);
  EXPECT_EQ(experiment.model.feed_forward.hidden, 2816) << "8/3 of 1024 rounded up to a multiple of 256";
  EXPECT_FALSE(experiment.model.tied_embeddings);
  EXPECT_EQ(experiment.model.positions, 0);
  EXPECT_EQ(experiment.training.sequence_length, 4096);
  EXPECT_EQ(experiment.training.precision, Precision::bf16);
  EXPECT_EQ(experiment.training.gradient_precision, Precision::fp32);
  EXPECT_EQ(experiment.cluster.network.name, "ib-ndr-8x400");
  EXPECT_EQ(experiment.cluster.storage.node_write_bytes_per_second, 25e9);
}

TEST(ReadExperiment, KeysChangeWhatDerivedDefaultsOfAPresetFollowFrom) {
  const Experiment experiment = read_good(std::string(small) + "[training]\nsequence_length = 512\n",
                                          {"model.heads=16", "model.hidden=1024"});
  EXPECT_EQ(experiment.model.attention.kv_heads, 16);
  EXPECT_EQ(experiment.model.attention.head_dim, 64);
  EXPECT_EQ(experiment.model.feed_forward.hidden, 4096);
  EXPECT_EQ(experiment.model.positions, 1024) << "the preset's";
}

TEST(ReadExperiment, StepsFollowFromTokens) {
  const Experiment experiment =
      read_good(std::string(small) + "[training]\nglobal_batch = 10\nsequence_length = 100\ntokens = 2500\n");
  EXPECT_EQ(experiment.training.steps, 3);
}

TEST(ReadExperiment, TheUsualPrecisionIsOneThatAllDevicesHave) {
  EXPECT_EQ(
      read_good("model = \"gpt2-small\"\ncluster.node = \"dgx-2\"\ntraining.stack = \"megatron-2021\"\n")
          .training.precision,
      Precision::fp16);
  EXPECT_EQ(read_good("model = \"gpt2-small\"\n").training.precision, Precision::fp32)
      << "this machine's CPUs";
  EXPECT_EQ(read_good("model = \"gpt2-small\"\ntraining.precision = \"fp64\"\n").training.gradient_precision,
            Precision::fp64);
}

TEST(ReadExperiment, FloatsAreTakenWhereTheyAreWholeNumbers) {
  EXPECT_EQ(read_good(std::string(small) + "[training]\nglobal_batch = 5e2\n").training.global_batch, 500);
  EXPECT_NE(errors_of(std::string(small) + "[training]\nglobal_batch = 15099494.4\n").find("write 15099494"),
            std::string::npos);
}

TEST(ReadExperiment, SizesAndRatesHaveUnits) {
  const Experiment experiment = read_good(R"(
model = "gpt2-small"
[cluster.node]
preset = "dgx-a100-80gb"
host_memory = "1 TiB"
link_bandwidth = "2400 Gbit/s"
link_latency = "1.5 us"
[cluster.node.device]
preset = "a100-sxm-80gb"
memory = "40 GB"
peak_flops = { bf16 = "0.3 PFLOP/s" }
)");
  const NodeSpec& node = experiment.cluster.groups.front().node;
  EXPECT_EQ(node.host_memory_bytes, std::int64_t{1} << 40);
  EXPECT_EQ(node.link_bytes_per_second, 300e9);
  EXPECT_EQ(node.link_latency_seconds, 1.5e-6);
  EXPECT_EQ(node.device.memory_bytes, 40'000'000'000);
  EXPECT_EQ(node.device.peak_flops.at(Precision::bf16), 3e14);
  EXPECT_EQ(node.device.peak_flops.at(Precision::fp32), 19.5e12) << "the preset's";
}

TEST(ReadExperiment, MixedClustersHaveGroups) {
  const Experiment experiment = read_good(R"(
model = "llama2-7b"
[cluster]
network = "roce-8x200"
[[cluster.group]]
node = "dgx-a100-80gb"
nodes = 2
[[cluster.group]]
node = "dgx-h100"
nodes = 1
network = "ib-ndr-8x400"
)");
  ASSERT_EQ(experiment.cluster.groups.size(), 2U);
  EXPECT_EQ(experiment.cluster.devices(), 24);
  EXPECT_EQ(experiment.cluster.network.name, "roce-8x200");
  EXPECT_FALSE(experiment.cluster.groups[0].network);
  EXPECT_EQ(experiment.cluster.groups[1].network->name, "ib-ndr-8x400");
  EXPECT_EQ(experiment.cluster.storage.node_write_bytes_per_second, 25e9) << "the slowest node";
}

TEST(Overrides, ReplaceAddAndDescendIntoPresets) {
  const Experiment experiment =
      read_good(small, {"training.precision=fp32", "training.optimizer.lr=1e-3", "cluster.node.devices=4",
                        "search.tensor=[1, 2]", "name=other name", "model=llama2-7b", "model.layers=2"});
  EXPECT_EQ(experiment.training.precision, Precision::fp32);
  EXPECT_EQ(experiment.training.optimizer.learning_rate, 1e-3);
  EXPECT_EQ(experiment.cluster.groups.front().node.devices, 4);
  EXPECT_EQ(experiment.cluster.groups.front().node.device.name, "a100-sxm-80gb");
  EXPECT_EQ(experiment.search.tensor, (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(experiment.name, "other name");
  EXPECT_EQ(experiment.model.hidden, 4096);
  EXPECT_EQ(experiment.model.layers, 2);
}

TEST(Overrides, AreCheckedLikeTheFileAndNamedInErrors) {
  EXPECT_EQ(errors_of(small, {"training.global_batch=0"}),
            "--set:1:23: error: training.global_batch = 0 is below the minimum of 1\n"
            "    1 | training.global_batch=0\n"
            "      |                       ^\n"
            "  expected: integer from 1 to 1000000\n");
  EXPECT_NE(errors_of(small, {"training.globalbatch=8"}).find("did you mean \"global_batch\"?"),
            std::string::npos);
  EXPECT_NE(errors_of(small, {"search.tensor=[1,"}).find("--set:1:"), std::string::npos);
  EXPECT_NE(errors_of(small, {"nothing"}).find("expected path=value, saw \"nothing\""), std::string::npos);
  EXPECT_NE(errors_of(small, {"=3"}).find("is no path of a key"), std::string::npos);
  EXPECT_NE(errors_of(small, {"model..heads=3"}).find("is no path of a key"), std::string::npos);
  EXPECT_NE(errors_of(small, {"cluster.nodes.x=3"}).find("would be a key of integer 2"), std::string::npos);
}

TEST(Sweep, MakesAPointOfEachCombination) {
  const auto points = read_sweep_text(std::string(small) + R"(
[sweep]
"cluster.nodes" = [1, 2, 4]
"cluster.node" = ["dgx-a100-80gb", "dgx-h100"]
)",
                                      "spec.toml");
  ASSERT_TRUE(points) << points.diagnostics.render();
  ASSERT_EQ(points->size(), 6U);
  EXPECT_EQ((*points)[1].settings, (std::vector<std::string>{"cluster.nodes=1", "cluster.node=dgx-h100"}));
  EXPECT_EQ((*points)[1].experiment.cluster.groups.front().node.name, "dgx-h100");
  EXPECT_EQ((*points)[5].experiment.cluster.devices(), 32);
  EXPECT_TRUE((*points)[5].experiment.sweep.empty());
}

TEST(Sweep, WithoutAxesIsTheExperimentItself) {
  const auto points = read_sweep_text(small, "spec.toml");
  ASSERT_TRUE(points);
  ASSERT_EQ(points->size(), 1U);
  EXPECT_TRUE(points->front().settings.empty());
  EXPECT_EQ(points->front().experiment, read_good(small));
}

TEST(Sweep, TellsAnErrorOfTheBaseOnceAndOneOfAPointWithIt) {
  const auto errors = read_sweep_text(std::string(small) + R"(
[search]
tensor = [5]
[sweep]
"cluster.nodes" = [1, 2]
"search.micro_batch" = [1, 7]
)",
                                      "spec.toml");
  const std::string text = errors.diagnostics.render();
  EXPECT_EQ(errors.diagnostics.entries().size(), 2U) << text;
  EXPECT_NE(text.find("search.tensor: no value is possible: model.heads 12 % tensor 5 = 2\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("micro_batch 7 = 4 (sweep point cluster.nodes=1, search.micro_batch=7)"),
            std::string::npos)
      << text;
}

TEST(Sweep, ABaseThatEveryPointMendsIsNoError) {
  const auto points = read_sweep_text(std::string(small) + R"(
[search]
tensor = [5]
[sweep]
"search.tensor" = [1, 2]
)",
                                      "spec.toml");
  EXPECT_TRUE(points) << points.diagnostics.render();
}

TEST(Search, NamesSharesOfAnOffloadInEighths) {
  const Experiment experiment =
      read_good(small, {"search.offload_optimizer=['none', 'cpu/4', 'nvme/8']",
                        "search.offload_parameters=cpu", "training.stack=deepspeed"});
  EXPECT_EQ(
      experiment.search.offload_optimizer,
      (std::vector<OffloadOption>{OffloadDevice::none, {OffloadDevice::cpu, 4}, {OffloadDevice::nvme, 8}}));
  EXPECT_EQ(experiment.search.offload_parameters, std::vector<OffloadOption>{OffloadDevice::cpu});
  EXPECT_TRUE(allows(experiment.search.offload_optimizer, OffloadDevice::cpu, 4));
  EXPECT_FALSE(allows(experiment.search.offload_optimizer, OffloadDevice::cpu, 8));
  EXPECT_TRUE(allows(experiment.search.offload_parameters, OffloadDevice::cpu, 1));
  EXPECT_FALSE(allows(experiment.search.offload_parameters, OffloadDevice::none, 0));
  EXPECT_NE(errors_of(small, {"search.offload_optimizer=cpu/9"}).find("did you mean \"cpu/"),
            std::string::npos);
}

TEST(Sweep, OfTooManyPointsIsRefused) {
  std::string values = "[1";
  for (int i = 2; i <= 200; ++i) values += ", " + std::to_string(i);
  values += "]";
  const std::string text = std::string(small) + "[sweep]\n\"cluster.nodes\" = " + values +
                           "\n\"training.seed\" = " + values + "\n";
  EXPECT_NE(errors_of(text).find("more than 10000 points"), std::string::npos);
}

TEST(CheckExperiment, FindsWhatNoFileWouldBeAllowedToSay) {
  Experiment experiment = read_good(small);
  EXPECT_TRUE(check_experiment(experiment).empty()) << check_experiment(experiment).render();
  experiment.model.attention.kv_heads = 5;
  experiment.cluster.groups.front().nodes = -1;
  const std::string errors = check_experiment(experiment).render();
  EXPECT_NE(errors.find("error: model.heads 12 % model.kv_heads 5 = 2"), std::string::npos) << errors;
  EXPECT_NE(errors.find("error: cluster.nodes = -1 is below the minimum of 1"), std::string::npos) << errors;
}

TEST(ReadExperiment, SaysWhyAFileCannotBeRead) {
  EXPECT_EQ(read_experiment("no/such.toml").diagnostics.render(),
            "no/such.toml: error: no such file\n  remedy: check the path\n");
  EXPECT_EQ(read_experiment("examples").diagnostics.render(), "examples: error: is a folder, not a file\n");
}

TEST(ReadExperiment, SurvivesTruncatedAndMutatedFiles) {
  const std::string good =
      tests::file_text("examples/gpt3-175b.toml") + tests::file_text("tests/golden/specs/quantities.toml");
  const std::string spec = tests::file_text("examples/gpt3-175b.toml");
  ASSERT_FALSE(spec.empty());
  for (std::size_t length = 0; length < spec.size(); ++length)
    read_experiment_text(spec.substr(0, length), "cut.toml").diagnostics.render();
  std::mt19937 random(1);
  const auto below = [&random](std::size_t end) {
    return std::uniform_int_distribution<std::size_t>(0, end - 1)(random);
  };
  for (int round = 0; round < 3000; ++round) {
    std::string text = round % 2 == 0 ? spec : good;
    for (std::size_t change = 0; change <= below(4); ++change) {
      const std::size_t at = below(text.size());
      switch (below(4)) {
        case 0:
          text[at] = static_cast<char>(below(256));
          break;
        case 1:
          text.erase(at, below(20) + 1);
          break;
        case 2:
          text.insert(at, text.substr(below(text.size()), below(30)));
          break;
        default:
          text.insert(at, std::string(below(3) + 1, "[]{}=\".#-9e"[below(11)]));
      }
      if (text.empty()) text = "x";
    }
    const auto experiment = read_experiment_text(text, "mutated.toml");
    experiment.diagnostics.render();
    EXPECT_NE(experiment.ok(), experiment.diagnostics.has_errors()) << text;
  }
}

}  // namespace
}  // namespace specs
