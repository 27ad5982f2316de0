#include "specs/interchange/hugging_face.h"

#include <random>
#include <string>

#include <gtest/gtest.h>

#include "specs/language/read_experiment.h"
#include "specs/language/write_experiment.h"
#include "tests/support/golden_file.h"

namespace specs {
namespace {

std::string errors_of(const std::string& text) {
  const auto model = import_hugging_face_text(text, "config.json");
  EXPECT_FALSE(model);
  return model.diagnostics.render();
}

TEST(HuggingFace, AMissingNumberOfKeyValueHeadsIsTheNumberOfHeads) {
  EXPECT_EQ(import_hugging_face("tests/data/hf/llama2-7b-nokv.config.json")->attention.kv_heads, 32);
  EXPECT_EQ(import_hugging_face("tests/data/hf/llama2-70b.config.json")->attention.kv_heads, 8);
}

TEST(HuggingFace, TyingThatIsNotSaidIsTheFamilysHabit) {
  EXPECT_TRUE(import_hugging_face("tests/data/hf/gemma-2b-tie-omitted.config.json")->tied_embeddings);
  EXPECT_TRUE(import_hugging_face("tests/data/hf/falcon-7b.config.json")->tied_embeddings);
  EXPECT_FALSE(import_hugging_face_text(R"({"model_type": "llama"})", "config.json")->tied_embeddings);
}

TEST(HuggingFace, AHeadNeedNotBeHiddenOverHeads) {
  EXPECT_EQ(import_hugging_face("tests/data/hf/mistral-nemo-12b.config.json")->attention.head_dim, 128);
}

TEST(HuggingFace, OldNamesOfFalconMeanTheSame) {
  const auto old_names = import_hugging_face("tests/data/hf/falcon-7b-legacy-names.config.json");
  const auto new_names = import_hugging_face("tests/data/hf/falcon-7b.config.json");
  ASSERT_TRUE(old_names && new_names);
  ModelSpec renamed = *old_names;
  renamed.name = new_names->name;
  EXPECT_EQ(renamed, *new_names);
}

TEST(HuggingFace, ASparseTextPartIsFilledFromClassDefaultsAndSaysSo) {
  const auto model = import_hugging_face("tests/data/hf/llava-1.5-7b-sparse-text.config.json");
  ASSERT_TRUE(model);
  EXPECT_EQ(model->hidden, 4096);
  EXPECT_EQ(model->vocabulary, 32064);
  const std::string notes = model.diagnostics.render();
  EXPECT_NE(notes.find("the text part alone is counted"), std::string::npos) << notes;
  EXPECT_NE(notes.find("hidden_size 4096"), std::string::npos) << notes;
}

TEST(HuggingFace, LatentAttentionHasNoKeyValueHeadsOfItsOwn) {
  const auto model = import_hugging_face("tests/data/hf/found_deepseek-v3-r1.config.json");
  ASSERT_TRUE(model) << model.diagnostics.render();
  EXPECT_EQ(model->attention.latent->query_rank, 1536);
  EXPECT_EQ(model->attention.head_dim, 192);
  EXPECT_EQ(model->mixture->first_dense_layers, 3);
  EXPECT_EQ(model->prediction_layers, 1);
}

TEST(HuggingFace, AnUnknownArchitectureIsRefusedByName) {
  const auto model = import_hugging_face("tests/data/hf/found_glm5-unknown-arch.config.json");
  EXPECT_FALSE(model);
  EXPECT_NE(model.diagnostics.render().find("model_type \"glm_moe_dsa\" is not known"), std::string::npos);
  EXPECT_NE(errors_of(R"({"model_type": "lama"})").find("did you mean \"llama\"?"), std::string::npos);
}

TEST(HuggingFace, ErrorsNameTheirPlace) {
  EXPECT_EQ(
      errors_of("{\n  \"model_type\": \"llama\",\n  \"hidden_size\": \"4096\"\n}"),
      "config.json:3:3: error: hidden_size: expected integer, saw \"4096\"\n"
      "    3 |   \"hidden_size\": \"4096\"\n"
      "      |   ^^^^^^^^^^^^^\n"
      "config.json: note: not given, defaults of the class are used: vocab_size 32000, num_hidden_layers 32, "
      "intermediate_size 11008, num_attention_heads 32\n");
  EXPECT_NE(errors_of("{\"model_type\": \"llama\",").find("config.json:1:"), std::string::npos);
  EXPECT_NE(errors_of("").find("is empty"), std::string::npos);
  EXPECT_NE(errors_of("[]").find("expected an object"), std::string::npos);
  EXPECT_NE(errors_of("{}").find("has no model_type"), std::string::npos);
  EXPECT_NE(errors_of(R"({"model_type": "llama", "num_attention_heads": 0})").find("below the minimum of 1"),
            std::string::npos);
  EXPECT_NE(errors_of(R"({"model_type": "llama", "num_attention_heads": 7})").find("4096 % heads 7 = 1"),
            std::string::npos);
  EXPECT_NE(import_hugging_face("no/config.json").diagnostics.render().find("no such file"),
            std::string::npos);
}

TEST(HuggingFace, SurvivesMutatedFiles) {
  const std::string good = tests::file_text("tests/data/hf/found_deepseek-v3-r1.config.json");
  ASSERT_FALSE(good.empty());
  std::mt19937 random(1);
  const auto below = [&random](std::size_t end) {
    return std::uniform_int_distribution<std::size_t>(0, end - 1)(random);
  };
  for (int round = 0; round < 2000; ++round) {
    std::string text = good;
    for (int change = 0; change < 3; ++change) {
      const std::size_t at = below(text.size());
      if (below(2) == 0)
        text.replace(at, below(8), std::string(below(4), "{}[]\":,09-n"[below(11)]));
      else
        text.resize(at + 1);
    }
    const auto model = import_hugging_face_text(text, "config.json");
    model.diagnostics.render();
    EXPECT_NE(model.ok(), model.diagnostics.has_errors());
  }
}

TEST(Import, StartsAModelThatKeysMayChange) {
  const std::string text = R"(
model = { import = "llama3-8b.config.json", layers = 4 }
cluster.node = "dgx-h100"
)";
  const auto experiment = read_experiment_text(text, "tests/data/hf/spec.toml", {}, import_hugging_face);
  ASSERT_TRUE(experiment) << experiment.diagnostics.render();
  EXPECT_EQ(experiment->model.hidden, 4096);
  EXPECT_EQ(experiment->model.layers, 4);
  const auto again = read_experiment_text(write_experiment_toml(*experiment), "spec.toml");
  ASSERT_TRUE(again) << again.diagnostics.render();
  EXPECT_EQ(again->model, experiment->model);
}

TEST(Import, OfAMissingFileSaysSoAlone) {
  const auto experiment =
      read_experiment_text("model = { import = \"no.json\" }\n", "spec.toml", {}, import_hugging_face);
  EXPECT_EQ(experiment.diagnostics.render(), "no.json: error: no such file\n  remedy: check the path\n");
}

TEST(Import, BesideAPresetIsRefused) {
  const auto experiment = read_experiment_text("model = { import = \"no.json\", preset = \"gpt2-xl\" }\n",
                                               "spec.toml", {}, import_hugging_face);
  EXPECT_NE(experiment.diagnostics.render().find("model.import beside preset"), std::string::npos);
}

}  // namespace
}  // namespace specs
