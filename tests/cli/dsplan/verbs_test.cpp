// The verbs in process: exit codes, files, and JSON that parses.
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "cli/dsplan/application.h"

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
  Verbs() {
    fs::create_directories(folder_);
    write("small.toml", small_experiment);
  }
  ~Verbs() override { fs::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) { std::ofstream(folder_ / name) << text; }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

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

  const fs::path folder_ = fs::temp_directory_path() / ("dsplan-verbs-" + std::to_string(getpid()));
  std::ostringstream out_, err_;
};

TEST_F(Verbs, FromAnExperimentToAPlanAndEveryQuestionAboutIt) {
  ASSERT_EQ(run({"plan", path("small.toml"), "-o", path("plan.json")}), 0) << err_.str();
  ASSERT_TRUE(fs::exists(path("plan.json")));
  const nlohmann::json plan = json_of({"inspect", path("plan.json")});
  EXPECT_GT(plan["plan"]["step_seconds"].get<double>(), 0);
  EXPECT_EQ(json_of({"explain", path("plan.json")})["sensitivity"].size(), 5u);
  EXPECT_EQ(json_of({"verify", path("plan.json")})["verification"]["holds"],
            "every claim that was checked holds");
  EXPECT_TRUE(json_of({"why-not", path("plan.json"), "--set", "tensor=8"}).contains("headline"));
  EXPECT_EQ(json_of({"why-not", path("plan.json"), "--set", "tensor=3"})["answer"]["verdict"],
            "no such placement is legal");
  EXPECT_EQ(run({"why-not", path("plan.json"), "--set", "tensr=3"}), 2);
  EXPECT_EQ(json_of({"estimate", path("small.toml"), "--tensor", "2", "--pipeline", "4"})["estimate"]["fits"],
            "yes");
  EXPECT_EQ(
      json_of({"estimate", path("small.toml"), "--plan", path("plan.json")})["estimate"]["step_seconds"],
      plan["plan"]["step_seconds"]);
  EXPECT_EQ(
      json_of({"what-if", path("small.toml"), "--set", "training.global_batch=32"})["variants"][0]["measure"],
      "mesh");
}

TEST_F(Verbs, DiffAnswersWithItsExitCode) {
  ASSERT_EQ(run({"plan", path("small.toml"), "-o", path("a.json")}), 0);
  ASSERT_EQ(run({"plan", path("small.toml"), "-o", path("b.json"), "--set", "training.global_batch=32"}), 0);
  EXPECT_EQ(run({"diff", path("a.json"), path("a.json")}), 0);
  EXPECT_EQ(run({"diff", path("a.json"), path("b.json")}), 1);
  EXPECT_NE(out_.str().find("training.global_batch"), std::string::npos) << out_.str();
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

TEST_F(Verbs, CompileWritesAPlanForEachPointAndOneTable) {
  write("sweep.toml", std::string(small_experiment) + "[sweep]\n\"training.global_batch\" = [8, 16, 32]\n");
  const nlohmann::json table = json_of({"compile", path("sweep.toml"), "-o", path("plans")});
  ASSERT_EQ(table["points"].size(), 3u);
  EXPECT_EQ(table["points"][1]["training.global_batch"], "16");
  for (const char* file : {"plans/point-1.json", "plans/point-2.json", "plans/point-3.json"})
    EXPECT_EQ(run({"inspect", path(file)}), 0) << file;
}

}  // namespace
}  // namespace cli
