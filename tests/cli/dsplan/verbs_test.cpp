// The verbs in process: exit codes, files, and JSON that parses.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/dsplan/application.h"
#include "tests/support/run_program.h"
#include "tests/support/temporary_folder.h"

namespace cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* small_experiment = R"(
[model]
preset = "gpt2-medium"
[cluster]
node = "dgx-a100-80gb"
nodes = 1
[training]
global_batch = 16
sequence_length = 1024
stack = "megatron-core"
)";

class Verbs : public ::testing::Test {
 protected:
  Verbs() { write("small.toml", small_experiment); }

  void write(const std::string& name, const std::string& text) { std::ofstream(folder_ / name) << text; }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  std::string text_of(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(folder_ / name).rdbuf();
    return text.str();
  }

  int run(std::vector<std::string> arguments) {
    out_.str({});
    err_.str({});
    return run_dsplan(arguments, out_, err_, TextStyle{});
  }
  nlohmann::json json_of(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--format", "json"});
    run(arguments);
    return nlohmann::json::parse(out_.str());
  }

  const tests::TemporaryFolder temporary_;
  const fs::path& folder_ = temporary_.path();
  std::ostringstream out_, err_;
};

TEST_F(Verbs, FromAnExperimentToAPlanAndEveryQuestionAboutIt) {
  ASSERT_EQ(run({"plan", path("small.toml"), "-o", path("plan.json")}), 0) << err_.str();
  ASSERT_TRUE(fs::exists(path("plan.json")));
  const nlohmann::json plan = json_of({"inspect", path("plan.json")});
  EXPECT_GT(plan["plan"]["step_seconds"].get<double>(), 0);
  EXPECT_EQ(json_of({"explain", path("plan.json")})["sensitivity"].size(), 6u);
  EXPECT_EQ(json_of({"verify", path("plan.json")})["verification"]["holds"],
            "every claim that was checked holds");
  EXPECT_TRUE(json_of({"why-not", path("plan.json"), "--set", "tensor=8"}).contains("headline"));
  EXPECT_EQ(json_of({"why-not", path("plan.json"), "--set", "tensor=3"})["answer"]["verdict"],
            "no such placement is legal");
  EXPECT_EQ(run({"why-not", path("plan.json"), "--set", "tensr=3"}), 2);
  for (const char* nonsense : {"tensor=9999", "pipeline=0", "micro_batch=1000000", "data=-4"}) {
    EXPECT_EQ(run({"why-not", path("plan.json"), "--set", nonsense}), 2) << nonsense;
    EXPECT_NE(err_.str().find("legal: 1, 2"), std::string::npos) << err_.str();
  }
  EXPECT_EQ(json_of({"estimate", path("small.toml"), "--tensor", "2", "--pipeline", "4"})["estimate"]["fits"],
            "yes");
  EXPECT_EQ(
      json_of({"estimate", path("small.toml"), "--plan", path("plan.json")})["estimate"]["step_seconds"],
      plan["plan"]["step_seconds"]);
  ASSERT_EQ(run({"estimate", path("small.toml"), "--tensor", "4", "--pipeline", "2", "--output-mode",
                 "token-parallel", "--cut-before-ffn", "-o", path("hybrid.json")}),
            0)
      << err_.str();
  EXPECT_EQ(run({"diff", path("plan.json"), path("hybrid.json")}), 1) << err_.str();
  EXPECT_EQ(run({"simulate", path("hybrid.json")}), 0) << err_.str();
  EXPECT_EQ(
      json_of({"what-if", path("small.toml"), "--set", "training.global_batch=32"})["variants"][0]["measure"],
      "step time");
}

TEST_F(Verbs, EstimateCountsAModelFromItsConfigurationAndRefusesAnUnknownOne) {
  const nlohmann::json gpt2 = json_of({"estimate", "--import", "tests/data/hf/gpt2.config.json"});
  EXPECT_TRUE(gpt2["total_parameters"].is_number_integer());
  EXPECT_EQ(gpt2["total_parameters"], 124'439'808);
  const nlohmann::json llava =
      json_of({"estimate", "--import", "tests/data/hf/llava-1.5-7b-sparse-text.config.json"});
  EXPECT_EQ(llava["total_parameters"], 6'738'939'904);
  EXPECT_NE(llava["notes"].dump().find("the text part alone is counted"), std::string::npos);
  EXPECT_NE(llava["notes"].dump().find("defaults of the class"), std::string::npos);
  EXPECT_EQ(run({"estimate", "--import", "tests/data/hf/found_glm5-unknown-arch.config.json"}), 2);
  EXPECT_NE(err_.str().find("is not known"), std::string::npos);
  EXPECT_EQ(run({"estimate", "--import", path("no-such.json")}), 2);
  EXPECT_EQ(run({"estimate", path("small.toml"), "--import", "tests/data/hf/gpt2.config.json"}), 2);
  EXPECT_EQ(run({"estimate"}), 2);
}

TEST_F(Verbs, SimulateAgreesWithThePredictionAndWritesATrace) {
  ASSERT_EQ(run({"plan", path("small.toml"), "-o", path("plan.json"), "--set", "search.pipeline=[4]"}), 0);
  const nlohmann::json answer =
      json_of({"simulate", path("plan.json"), "--trace", path("traces/t.json")})["simulation"];
  EXPECT_LT(std::abs(answer["difference"].get<double>()), 0.02);
  const nlohmann::json trace = nlohmann::json::parse(std::ifstream(path("traces/t.json")));
  double end = 0;
  for (const nlohmann::json& event : trace["traceEvents"])
    if (event["ph"] == "X") end = std::max(end, event["ts"].get<double>() + event["dur"].get<double>());
  EXPECT_NEAR(end, 1e6 * answer["simulated_step_seconds"].get<double>(), 0.01);
  EXPECT_EQ(run({"simulate", path("small.toml")}), 2) << "an experiment is no plan";
  EXPECT_EQ(run({"simulate", path("plan.json"), "--trace", "/proc/no-such-folder/t.json"}), 3);
}

TEST_F(Verbs, WhatIfPricesTheSamePlacementWithWhatSearchAsksOfIt) {
  const auto what_if = [&](const std::string& setting) {
    return json_of({"what-if", path("small.toml"), "--set", setting});
  };
  const nlohmann::json recomputed = what_if("search.recomputation=[\"full\"]");
  const auto bytes_of = [&](const nlohmann::json& answer, const std::string& wanted, const char* variant) {
    for (const nlohmann::json& row : answer["memory"])
      if (row["class"] == wanted && row[variant].is_number()) return row[variant].get<double>();
    return 0.0;
  };
  EXPECT_LT(bytes_of(recomputed, "activations", "unchanged"),
            0.5 * bytes_of(recomputed, "activations", "base"));
  EXPECT_EQ(bytes_of(recomputed, "parameters", "unchanged"), bytes_of(recomputed, "parameters", "base"));
  const nlohmann::json mixture = what_if("model.mixture.experts=8");
  EXPECT_GT(bytes_of(mixture, "parameters", "unchanged"), 2 * bytes_of(mixture, "parameters", "base"));
  std::vector<std::string> measures;
  for (const nlohmann::json& row : mixture["variants"]) measures.push_back(row["measure"]);
  for (const char* measure : {"parameters", "parameters a token uses", "compute a token"})
    EXPECT_NE(std::find(measures.begin(), measures.end(), measure), measures.end()) << measure;
}

TEST_F(Verbs, DiffAnswersWithItsExitCode) {
  ASSERT_EQ(run({"plan", path("small.toml"), "-o", path("a.json")}), 0);
  ASSERT_EQ(run({"plan", path("small.toml"), "-o", path("b.json"), "--set", "training.global_batch=32"}), 0);
  EXPECT_EQ(run({"diff", path("a.json"), path("a.json")}), 0);
  EXPECT_EQ(run({"diff", path("a.json"), path("b.json")}), 1);
  EXPECT_NE(out_.str().find("training.global_batch"), std::string::npos) << out_.str();
}

TEST_F(Verbs, DiffLeavesBlankWhatOnlyOneOfThePlansKnows) {
  ASSERT_EQ(run({"plan", path("small.toml"), "-o", path("a.json"), "--set", "training.tokens=1000000000"}),
            0);
  ASSERT_EQ(run({"plan", path("small.toml"), "-o", path("b.json"), "--set", "training.tokens=0"}), 0);
  nlohmann::json difference = json_of({"diff", path("a.json"), path("b.json")});
  int rows = 0;
  for (nlohmann::json& row : difference["headline"])
    if (row["measure"] == "whole run" || row["measure"] == "cost of the run") {
      ++rows;
      EXPECT_TRUE(row["from"].is_string());
      EXPECT_TRUE(row["to"].is_null() && row["change"].is_null()) << row;
    }
  EXPECT_EQ(rows, 2);
}

TEST_F(Verbs, NothingIsWrittenWhereNothingFitsOrTheInputIsBad) {
  const std::vector<std::string> too_large{
      "plan",  path("small.toml"),       "-o",    path("plan.json"),
      "--set", "model.preset=gpt3-175b", "--set", "search.offload_optimizer=[\"none\"]"};
  EXPECT_EQ(run(too_large), 1) << err_.str();
  EXPECT_NE(out_.str().find("more a device"), std::string::npos) << out_.str();
  EXPECT_EQ(run({"plan", path("small.toml"), "-o", path("plan.json"), "--set", "training.global_batch=0"}),
            2);
  EXPECT_EQ(run({"plan", path("small.toml"), "--dry-run"}), 0);
  EXPECT_FALSE(fs::exists(path("plan.json")));
}

TEST_F(Verbs, WhatIsReadIsNotOverwritten) {
  const auto text_of = [&](const std::string& name) {
    std::ostringstream text;
    text << std::ifstream(path(name)).rdbuf();
    return text.str();
  };
  ASSERT_EQ(run({"plan", path("small.toml"), "-o", path("plan.json")}), 0);
  fs::create_symlink("plan.json", path("link.json"));
  const std::string plan = text_of("plan.json");
  const std::string spec = text_of("small.toml");
  EXPECT_EQ(run({"plan", path("small.toml"), "-o", path("small.toml")}), 2);
  EXPECT_NE(err_.str().find("would overwrite"), std::string::npos) << err_.str();
  EXPECT_EQ(run({"report", path("plan.json"), "-o", path("link.json")}), 2);
  EXPECT_EQ(run({"simulate", path("plan.json"), "--trace", path("plan.json")}), 2);
  EXPECT_EQ(run({"estimate", path("small.toml"), "--plan", path("plan.json"), "-o", path("plan.json")}), 2);
  EXPECT_EQ(text_of("plan.json"), plan);
  EXPECT_EQ(text_of("small.toml"), spec);
  EXPECT_EQ(run({"plan", path("small.toml"), "-o", path("plan.json")}), 0) << "an older plan is replaced";
}

TEST_F(Verbs, ANameThatCannotBeWrittenIsRefusedBeforeTheWork) {
  write("sweep.toml", std::string(small_experiment) + "[sweep]\n\"training.global_batch\" = [8, 16]\n");
  EXPECT_EQ(run({"plan", path("small.toml"), "-o", folder_.string()}), 2);
  EXPECT_EQ(run({"plan", path("small.toml"), "-o", path("small.toml/plan.json")}), 2);
  EXPECT_EQ(run({"compile", path("sweep.toml"), "-o", path("sweep.toml")}), 2);
  EXPECT_EQ(out_.str(), "");
  EXPECT_EQ(err_.str().find("planned"), std::string::npos) << err_.str();
}

TEST_F(Verbs, NoPlanIsWrittenOfNumbersThatAreNotFinite) {
  const std::vector<std::string> settings{"--set", "cluster.node.device.memory_bandwidth=1e-300"};
  for (std::vector<std::string> command :
       {std::vector<std::string>{"plan", path("small.toml"), "-o", path("plan.json")},
        {"estimate", path("small.toml"), "--tensor", "8", "-o", path("plan.json")}}) {
    command.insert(command.end(), settings.begin(), settings.end());
    EXPECT_EQ(run(command), 2) << out_.str();
    EXPECT_NE(err_.str().find("no finite number comes out for"), std::string::npos) << err_.str();
  }
  EXPECT_FALSE(fs::exists(path("plan.json")));
}

TEST_F(Verbs, CompileWritesAPlanForEachPointAndOneTable) {
  write("sweep.toml", std::string(small_experiment) + "[sweep]\n\"training.global_batch\" = [8, 16, 32]\n");
  const nlohmann::json table = json_of({"compile", path("sweep.toml"), "-o", path("plans")});
  ASSERT_EQ(table["points"].size(), 3u);
  EXPECT_EQ(table["points"][1]["training.global_batch"], "16");
  for (const char* file : {"plans/point-1.json", "plans/point-2.json", "plans/point-3.json"})
    EXPECT_EQ(run({"inspect", path(file)}), 0) << file;
  EXPECT_EQ(run({"compile", path("sweep.toml"), "-o", path("plans")}), 0);
  EXPECT_EQ(err_.str(), "") << "all plans are there: none is made again";
  fs::remove(path("plans/point-2.json"));
  EXPECT_EQ(run({"compile", path("sweep.toml"), "-o", path("plans")}), 0);
  EXPECT_TRUE(err_.str().ends_with("\r3/3 points\n")) << err_.str();
  EXPECT_EQ(run({"compile", path("sweep.toml"), "-o", path("plans"), "--anew"}), 0);
  EXPECT_EQ(err_.str(), "\r1/3 points\r2/3 points\r3/3 points\r3/3 points\n");
}

TEST_F(Verbs, CompileReplacesNoFileThatIsNoPlanOfItsSweep) {
  write("sweep.toml", std::string(small_experiment) + "[sweep]\n\"training.global_batch\" = [8, 16]\n");
  const std::vector<std::string> compile{"compile", path("sweep.toml"), "-o", path("plans")};
  ASSERT_EQ(run(compile), 0) << err_.str();
  const std::string mine = text_of("plans/point-1.json");
  std::string foreign = mine;
  const std::size_t name = foreign.find("\"name\": \"");
  ASSERT_NE(name, std::string::npos);
  foreign.insert(name + 9, "another-");
  for (const std::string& text : {foreign, std::string("{\"points\": 1}"), std::string()})
    for (const bool anew : {false, true}) {
      write("plans/point-2.json", text);
      std::vector<std::string> arguments = compile;
      if (anew) arguments.emplace_back("--anew");
      EXPECT_EQ(run(arguments), 2);
      EXPECT_NE(err_.str().find(path("plans/point-2.json") + " is no plan of "), std::string::npos)
          << err_.str();
      EXPECT_EQ(text_of("plans/point-2.json"), text);
      EXPECT_EQ(text_of("plans/point-1.json"), mine);
    }
}

TEST_F(Verbs, VerifyRefusesAPlanThatAnotherCostModelPricedAndTellsOfASearchThatWasStopped) {
  ASSERT_EQ(run({"plan", path("small.toml"), "-o", path("plan.json")}), 0) << err_.str();
  nlohmann::ordered_json plan = nlohmann::ordered_json::parse(text_of("plan.json"));
  plan["certificate"]["complete"] = false;
  write("stopped.json", plan.dump());
  const std::string answer = json_of({"verify", path("stopped.json")})["verification"]["holds"];
  EXPECT_NE(answer.find("but the search was stopped"), std::string::npos) << answer;
  plan["cost_model_version"] = "0.0.1 constants 00ff";
  write("other.json", plan.dump());
  EXPECT_EQ(run({"verify", path("other.json")}), 2);
  EXPECT_NE(err_.str().find("priced by cost model 0.0.1 constants 00ff"), std::string::npos) << err_.str();
}

TEST_F(Verbs, AConstantOfADeviceChangesItsPricesAndAnUnknownOneIsRefusedWhereItStands) {
  const auto seconds = [&](const std::string& constant) {
    write("one.toml", std::string(small_experiment));
    const nlohmann::json answer = json_of(
        {"estimate", path("one.toml"), "--set", "cluster.node.device.efficiency={\"" + constant + "}"});
    return answer["estimate"]["step_seconds"].get<double>();
  };
  EXPECT_GT(seconds("gemm.efficiency_16bit.ampere\"=0.3"),
            1.2 * seconds("gemm.efficiency_16bit.ampere\"=0.6"));
  for (const char* verb : {"plan", "estimate"}) {
    EXPECT_EQ(run({verb, path("one.toml"), "--set",
                   "cluster.node.device.efficiency={\"gemm.eficiency_16bit.ampere\"=0.3}"}),
              2);
    EXPECT_NE(err_.str().find("--set:1:"), std::string::npos) << err_.str();
    EXPECT_NE(err_.str().find("did you mean \"gemm.efficiency_16bit.ampere\"?"), std::string::npos)
        << err_.str();
  }
}

TEST_F(Verbs, CompileAnswersHowManyDevices) {
  write("sweep.toml", std::string(small_experiment) + "tokens = 1e12\n[sweep]\n\"cluster.nodes\" = [1, 2]\n");
  const std::vector<std::string> compile{"compile", path("sweep.toml"), "-o", path("plans")};
  const auto within = [&](const char* days) {
    std::vector<std::string> arguments = compile;
    arguments.insert(arguments.end(), {"--within-days", days});
    return json_of(arguments);
  };
  EXPECT_EQ(within("100000")["within_days"]["devices"], 8);
  EXPECT_EQ(within("0.001")["within_days"]["answer"], "no point of this sweep does");
  EXPECT_EQ(run({"compile", path("sweep.toml"), "-o", path("plans"), "--within-days", "1", "--set",
                 "training.tokens=0"}),
            2);
}

TEST_F(Verbs, AnInterruptedCompileKeepsWhatIsFinishedAndTheSameCommandMakesTheRest) {
  // So many points that the signal comes between two of them.
  constexpr std::size_t points = 100;
  std::string batches;
  for (std::size_t point = 1; point <= points; ++point) batches += std::to_string(64 * point) + ", ";
  write("sweep.toml", std::string(small_experiment) +
                          "[search]\npipeline = [4]\nmicro_batch = [1]\n[sweep]\n" +
                          "\"training.global_batch\" = [" + batches + "]\n");
  const std::string command =
      std::string(DSPLAN_PROGRAM) + " compile " + path("sweep.toml") + " -o " + path("plans");
  // Interrupted as soon as the first plan is there.
  const auto stopped = tests::run_program(
      "bash -c '" + command + " & compile=$!; until ls " + path("plans") +
      "/point-*.json >/dev/null 2>&1; do sleep 0.01; done; kill -INT $compile; wait $compile'");
  EXPECT_EQ(stopped.exit_code, 130) << stopped.out << stopped.err;
  EXPECT_NE(stopped.err.find("/100 points"), std::string::npos) << stopped.err;
  EXPECT_NE(stopped.err.find("the same command makes them"), std::string::npos) << stopped.err;
  std::size_t kept = 0;
  for (const auto& file : fs::directory_iterator(path("plans"))) {
    EXPECT_EQ(run({"inspect", file.path().string()}), 0) << file.path();
    ++kept;
  }
  ASSERT_GT(kept, 0u);
  ASSERT_LT(kept, points);
  const std::string remain = std::to_string(points - kept) + " points remain";
  EXPECT_NE(stopped.err.find(remain), std::string::npos) << stopped.err;
  EXPECT_NE(stopped.err.find("\n  training.global_batch="), std::string::npos) << stopped.err;
  const auto resumed = tests::run_program(command);
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_TRUE(resumed.err.ends_with("\r100/100 points\n")) << resumed.err;
  EXPECT_EQ(std::count(resumed.err.begin(), resumed.err.end(), '\r'), points - kept + 1) << resumed.err;
}

/// Runs a command and interrupts it once it has worked for so many hundredths of a second of CPU time.
tests::ProgramRun interrupted_after(const std::string& command, int hundredths) {
  return tests::run_program(
      "bash -c '" + command + " & work=$!; while read -r -a stat </proc/$work/stat && [ ${stat[13]} -lt " +
      std::to_string(hundredths) + " ]; do sleep 0.02; done; kill -INT $work; wait $work'");
}

TEST_F(Verbs, AnInterruptedSearchWritesTheBestSoFarAndSaysThatItIsNotProven) {
  const auto stopped = interrupted_after(
      std::string(DSPLAN_PROGRAM) + " plan examples/gpt3-175b.toml --exhaustive --set search.tensor=[8] " +
          "--set search.pipeline=[16] --set search.uneven_stages=false -o " + path("plan.json"),
      50);
  EXPECT_EQ(stopped.exit_code, 130) << stopped.out << stopped.err;
  EXPECT_NE(stopped.out.find("the best so far; the search was stopped"), std::string::npos) << stopped.out;
  EXPECT_NE(stopped.out.find("not proven"), std::string::npos) << stopped.out;
  std::ifstream file(path("plan.json"));
  const nlohmann::json plan = nlohmann::json::parse(file);
  EXPECT_EQ(plan["certificate"]["complete"], false);
  EXPECT_GT(plan["certificate"]["gap_fraction"], 0.0);
}

TEST_F(Verbs, ACompileThatIsInterruptedInASearchWritesNoPlanOfIt) {
  const auto stopped = interrupted_after(
      std::string(DSPLAN_PROGRAM) + " compile examples/mixed-a100-h100.toml -o " + path("plans"), 30);
  EXPECT_EQ(stopped.exit_code, 130) << stopped.out << stopped.err;
  EXPECT_NE(stopped.err.find("interrupted: 0 of 1 plans are written, 1 points remain"), std::string::npos)
      << stopped.err;
  EXPECT_TRUE(!fs::exists(path("plans")) || fs::is_empty(path("plans")));
}

}  // namespace
}  // namespace cli
