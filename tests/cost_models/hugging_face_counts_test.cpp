// Total parameters of models read from their config.json, against what transformers builds from the same
// file.
#include <cstdint>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cost_models/parameters.h"
#include "specs/interchange/hugging_face.h"

namespace cost_models {
namespace {

struct Count {
  const char* file;
  std::int64_t total;
  std::int64_t active;  ///< 0: as the total
};

constexpr Count counts[] = {
    {"llama2-7b-nokv", 6'738'415'616, 0},
    {"llama2-70b", 68'976'648'192, 0},
    {"llama3-8b", 8'030'261'248, 0},
    {"llama3.2-1b", 1'235'814'400, 0},
    {"mistral-nemo-12b", 12'247'782'400, 0},
    {"gemma-2b-tie-omitted", 2'506'172'416, 0},
    {"gemma3-270m", 268'098'176, 0},
    {"qwen2.5-7b", 7'615'616'512, 0},
    {"qwen3-30b-a3b", 30'532'122'624, 3'353'032'704},
    {"found_deepseek-v3-r1", 671'026'404'352, 37'552'282'624},
    {"found_mixtral-8x7b", 46'702'792'704, 12'879'925'248},
    {"falcon-7b", 6'921'720'704, 0},
    {"falcon-7b-legacy-names", 6'921'720'704, 0},
    {"gpt2", 124'439'808, 0},
    {"gpt-neox-20b", 20'554'567'680, 0},
    {"starcoder-15b", 15'517'456'384, 0},
    {"flan-t5-small", 76'961'152, 0},
    {"t5-11b", 11'307'321'344, 0},
    {"llava-1.5-7b-sparse-text", 6'738'939'904, 0},
};

TEST(HuggingFaceCounts, EqualThePublishedOnesToTheLastParameter) {
  for (const Count& count : counts) {
    SCOPED_TRACE(count.file);
    const auto model =
        specs::import_hugging_face(std::string("tests/data/hf/") + count.file + ".config.json");
    ASSERT_TRUE(model) << model.diagnostics.render();
    EXPECT_EQ(total_parameters(*model), count.total);
    EXPECT_EQ(active_parameters(*model), count.active == 0 ? count.total : count.active);
  }
}

/// Models of llm-foundry's table, whose counts hold learned positions and biases everywhere.
struct Mpt {
  std::int64_t layers, hidden, heads, total;
};

constexpr Mpt mpt_table[] = {
    {80, 8192, 64, 64'862'437'376}, {48, 7168, 56, 29'975'214'080}, {40, 5120, 40, 12'853'954'560},
    {32, 4096, 32, 6'658'859'008},  {32, 2560, 20, 2'651'837'440},  {24, 2048, 16, 1'315'950'592},
    {24, 1536, 12, 760'470'528},    {24, 1024, 16, 355'985'408},    {12, 768, 12, 125'311'488},
};

TEST(HuggingFaceCounts, OfMptWithLearnedPositionsAndBiases) {
  for (const Mpt& mpt : mpt_table) {
    const std::string config = fmt::format(
        R"({{"model_type": "mpt", "d_model": {}, "n_heads": {}, "n_layers": {}, "vocab_size": 50368, "max_seq_len": 2048,
             "learned_pos_emb": true, "no_bias": false, "attn_config": {{"alibi": false}}}})",
        mpt.hidden, mpt.heads, mpt.layers);
    const auto model = specs::import_hugging_face_text(config, "config.json");
    ASSERT_TRUE(model) << model.diagnostics.render();
    EXPECT_EQ(total_parameters(*model), mpt.total) << config;
  }
}

TEST(HuggingFaceCounts, OfTheTextPartOfAModelOfSeveralInputsWithoutTheSizesOfTheOthers) {
  const auto bare = specs::import_hugging_face_text(R"({"model_type": "llava", "hidden_size": 8})", "c.json");
  ASSERT_TRUE(bare) << bare.diagnostics.render();
  EXPECT_EQ(total_parameters(*bare), 6'738'415'616) << "the class's own text part";
  EXPECT_FALSE(specs::import_hugging_face_text(R"({"model_type": "llava", "text_config": "x"})", "c.json"));
}

TEST(HuggingFaceCounts, RefuseSizesWhoseCountNoIntegerHolds) {
  const auto model = specs::import_hugging_face_text(
      R"({"model_type": "llama", "hidden_size": 1000000000, "num_attention_heads": 1000})", "c.json");
  ASSERT_FALSE(model);
  EXPECT_NE(model.diagnostics.render().find("above the bound"), std::string::npos);
}

struct Written {
  const char* name;
  const char* config;
  std::int64_t total;
};

/// Architectures without a file above, by the sizes of a released checkpoint.
constexpr Written written[] = {
    {"GPT-J 6B", R"({"model_type": "gptj"})", 6'050'882'784},
    {"MPT-7B",
     R"({"model_type": "mpt", "d_model": 4096, "n_heads": 32, "n_layers": 32, "vocab_size": 50432})",
     6'649'286'656},
    {"BLOOM", R"({"model_type": "bloom", "n_embed": 14336, "n_layer": 70, "num_attention_heads": 112})",
     176'247'271'424},
    {"OPT-125M", R"({"model_type": "opt"})", 125'239'296},
    {"OPT-350M",
     R"({"model_type": "opt", "hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16,
         "ffn_dim": 4096, "word_embed_proj_dim": 512, "do_layer_norm_before": false})",
     331'196'416},
    {"Phi-3 mini", R"({"model_type": "phi3"})", 3'821'079'552},
    {"Gemma 2 2B", R"({"model_type": "gemma2"})", 2'614'341'888},
    {"Qwen1.5-MoE-A2.7B", R"({"model_type": "qwen2_moe"})", 14'315'784'192},
    {"Qwen3 8B",
     R"({"model_type": "qwen3", "hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 36,
         "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128})",
     8'190'735'360},
    {"DeepSeek-V2-Lite",
     R"({"model_type": "deepseek_v2", "vocab_size": 102400, "hidden_size": 2048, "intermediate_size": 10944,
         "moe_intermediate_size": 1408, "num_hidden_layers": 27, "num_attention_heads": 16, "n_shared_experts": 2,
         "n_routed_experts": 64, "num_experts_per_tok": 6, "first_k_dense_replace": 1, "q_lora_rank": null,
         "kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128})",
     15'706'484'224},
    {"Mistral 7B", R"({"model_type": "mistral"})", 7'241'732'096},
};

TEST(HuggingFaceCounts, OfReleasedCheckpointsAreExact) {
  for (const Written& entry : written) {
    SCOPED_TRACE(entry.name);
    const auto model = specs::import_hugging_face_text(entry.config, "config.json");
    ASSERT_TRUE(model) << model.diagnostics.render();
    EXPECT_EQ(total_parameters(*model), entry.total);
  }
}

}  // namespace
}  // namespace cost_models
