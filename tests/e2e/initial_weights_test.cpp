// dsrun --init-weights: a Hugging Face GPT-2 file as the start of a run, whatever the placement.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/e2e/process.h"
#include "tests/e2e/small_plan.h"
#include "tests/support/temporary_folder.h"

namespace e2e {
namespace {

using testing::HasSubstr;

struct Tensor {
  std::string name;
  std::vector<std::int64_t> shape;
};

/// Of small_plan.h's model, with Hugging Face's names; its linear layers are stored [in, out].
std::vector<Tensor> gpt2_tensors(bool tied) {
  std::vector<Tensor> tensors{{"transformer.wte.weight", {256, 32}}, {"transformer.wpe.weight", {32, 32}}};
  const auto add = [&](const std::string& name, const std::vector<std::int64_t>& weight) {
    tensors.push_back({name + ".weight", weight});
    tensors.push_back({name + ".bias", {weight.back()}});
  };
  for (int layer = 0; layer < 4; ++layer) {
    const std::string block = "transformer.h." + std::to_string(layer) + ".";
    add(block + "ln_1", {32});
    add(block + "attn.c_attn", {32, 96});
    add(block + "attn.c_proj", {32, 32});
    add(block + "ln_2", {32});
    add(block + "mlp.c_fc", {32, 64});
    add(block + "mlp.c_proj", {64, 32});
  }
  add("transformer.ln_f", {32});
  if (!tied) tensors.push_back({"lm_head.weight", {256, 32}});
  return tensors;
}

/// u64 length of the header, the header, the values as F32.
std::string safetensors(const std::vector<Tensor>& tensors, const std::function<float()>& value) {
  nlohmann::json header;
  std::string data;
  for (const Tensor& tensor : tensors) {
    std::int64_t elements = 1;
    for (const std::int64_t extent : tensor.shape) elements *= extent;
    const std::size_t begin = data.size();
    for (std::int64_t i = 0; i < elements; ++i) {
      const float element = value();
      data.append(reinterpret_cast<const char*>(&element), sizeof element);
    }
    header[tensor.name] = {{"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {begin, data.size()}}};
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t length = text.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + text + data;
}

/// In ±1, the same each time.
std::function<float()> spread_values() {
  return [state = std::uint32_t{1}]() mutable {
    state = state * 1664525u + 1013904223u;
    return static_cast<float>(state >> 8) / static_cast<float>(1u << 23) - 1.0f;
  };
}

class InitialWeights : public testing::Test {
 protected:
  void SetUp() override { write_file(scratch_.path() / "text.txt", training_text()); }

  void write_weights(const std::vector<Tensor>& tensors, const std::function<float()>& value) const {
    write_file(scratch_.path() / "model.safetensors", safetensors(tensors, value));
  }

  int run(const SmallPlan& plan) {
    write_file(scratch_.path() / "plan.json", plan_text(plan));
    ProcessOptions options;
    options.directory = scratch_.path();
    options.arguments = {"plan.json", "--data",         "text.txt",          "--run-dir",
                         "run",       "--init-weights", "model.safetensors", "--overwrite"};
    Process process(DSRUN_PROGRAM, options);
    const int code = process.wait().value_or(-1);
    errors_ = process.errors();
    return code;
  }

  std::vector<double> losses() const {
    std::vector<double> losses;
    std::istringstream lines(read_file(scratch_.path() / "run" / "metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) losses.push_back(nlohmann::json::parse(line)["loss"]);
    return losses;
  }

  std::string errors_;

 private:
  tests::TemporaryFolder scratch_;
};

TEST_F(InitialWeights, GiveTheSameLossesUnderEveryPlacement) {
  for (const bool tied : {true, false}) {
    write_weights(gpt2_tensors(tied), spread_values());
    ASSERT_EQ(run({.steps = 2, .tied = tied}), 0) << errors_;
    const std::vector<double> expected = losses();
    ASSERT_EQ(expected.size(), 2U);
    // Weights of the program's own would give ln 256.
    EXPECT_GT(std::abs(expected[0] - std::log(256.0)), 0.05);
    for (const SmallPlan& plan : {SmallPlan{.tensor = 2, .steps = 2, .tied = tied},
                                  SmallPlan{.pipeline = 2, .steps = 2, .tied = tied},
                                  SmallPlan{.data = 2, .zero_stage = 3, .steps = 2, .tied = tied}}) {
      ASSERT_EQ(run(plan), 0) << errors_;
      const std::vector<double> found = losses();
      ASSERT_EQ(found.size(), 2U);
      for (std::size_t step = 0; step < 2; ++step)
        EXPECT_NEAR(found[step], expected[step], 1e-5 * expected[step])
            << "tensor " << plan.tensor << " pipeline " << plan.pipeline << " data " << plan.data;
    }
  }
}

/// The padding rows of the table take no probability: 256 ids are equally likely.
TEST_F(InitialWeights, ThatAreAllZeroGiveTheEntropyOfTheVocabulary) {
  write_weights(gpt2_tensors(true), [] { return 0.0f; });
  ASSERT_EQ(run({.tensor = 2, .pipeline = 2, .steps = 1}), 0) << errors_;
  EXPECT_NEAR(losses().front(), std::log(256.0), 1e-6);
}

TEST_F(InitialWeights, ThatLackATensorOrHaveAnotherShapeEndTheRunBeforeTheFirstStep) {
  std::vector<Tensor> tensors = gpt2_tensors(true);
  tensors.pop_back();  // transformer.ln_f.bias
  write_weights(tensors, spread_values());
  EXPECT_EQ(run({.pipeline = 2, .steps = 1}), 2) << errors_;
  EXPECT_THAT(errors_, HasSubstr("ln_f.bias"));
  tensors = gpt2_tensors(true);
  tensors.front().shape = {255, 32};
  write_weights(tensors, spread_values());
  EXPECT_EQ(run({.tensor = 2, .steps = 1}), 2) << errors_;
  EXPECT_THAT(errors_, HasSubstr("wte.weight"));
}

}  // namespace
}  // namespace e2e
