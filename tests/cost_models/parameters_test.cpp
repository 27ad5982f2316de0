#include "cost_models/parameters.h"

#include <gtest/gtest.h>

#include "tests/cost_models/model_fixtures.h"

namespace cost_models {
namespace {

using testing::deepseek_v3;
using testing::gpt;
using testing::llama;
using testing::mixtral_8x7b;

TEST(Parameters, CountPublishedDenseModelsToTheLastParameter) {
  EXPECT_EQ(total_parameters(gpt(12, 768, 12, 50257, 1024)), 124'439'808);  // GPT-2
  EXPECT_EQ(total_parameters(llama(32, 4096, 32, 32, 11008, 32000)), 6'738'415'616);
  EXPECT_EQ(total_parameters(llama(80, 8192, 64, 8, 28672, 32000)), 68'976'648'192);
  EXPECT_EQ(total_parameters(llama(32, 4096, 32, 8, 14336, 128256)), 8'030'261'248);
  specs::ModelSpec small = llama(16, 2048, 32, 8, 8192, 128256);
  small.tied_embeddings = true;
  EXPECT_EQ(total_parameters(small), 1'235'814'400);  // Llama 3.2 1B
}

TEST(Parameters, CountHeadsWhoseWidthIsNotHiddenOverHeads) {
  specs::ModelSpec nemo = llama(40, 5120, 32, 8, 14336, 131072);
  nemo.attention.head_dim = 128;
  EXPECT_EQ(total_parameters(nemo), 12'247'782'400);
  specs::ModelSpec gemma = llama(18, 2048, 8, 1, 16384, 256000);
  gemma.attention.head_dim = 256;
  gemma.tied_embeddings = true;
  EXPECT_EQ(total_parameters(gemma), 2'506'172'416);
  specs::ModelSpec gemma3 = llama(18, 640, 4, 1, 2048, 262144);
  gemma3.attention.head_dim = 256;
  gemma3.attention.qk_norm = true;
  gemma3.norms_per_layer = 4;
  gemma3.tied_embeddings = true;
  EXPECT_EQ(total_parameters(gemma3), 268'098'176);
}

TEST(Parameters, CountBiasesAndSharedNorms) {
  specs::ModelSpec qwen = llama(28, 3584, 28, 4, 18944, 152064);
  qwen.attention.qkv_bias = true;
  EXPECT_EQ(total_parameters(qwen), 7'615'616'512);
  specs::ModelSpec neox = gpt(44, 6144, 64, 50432, 0);
  neox.position_encoding = specs::PositionEncoding::rotary;
  neox.tied_embeddings = false;
  neox.parallel_blocks = true;
  EXPECT_EQ(total_parameters(neox), 20'554'567'680);
  specs::ModelSpec falcon = gpt(32, 4544, 71, 65024, 0);
  falcon.attention.kv_heads = 1;
  falcon.attention.qkv_bias = falcon.attention.output_bias = falcon.feed_forward.bias = false;
  falcon.position_encoding = specs::PositionEncoding::rotary;
  falcon.parallel_blocks = true;
  falcon.norms_per_layer = 1;
  EXPECT_EQ(total_parameters(falcon), 6'921'720'704);
  specs::ModelSpec starcoder = gpt(40, 6144, 48, 49152, 8192);
  starcoder.attention.kv_heads = 1;
  EXPECT_EQ(total_parameters(starcoder), 15'517'456'384);
}

TEST(Parameters, CountMosaicModels) {
  EXPECT_EQ(total_parameters(gpt(80, 8192, 64, 50368, 2048)), 64'862'437'376);
  EXPECT_EQ(total_parameters(gpt(12, 768, 12, 50368, 2048)), 125'311'488);
}

TEST(Parameters, CountMixturesWithTheirActivePart) {
  EXPECT_EQ(total_parameters(mixtral_8x7b()), 46'702'792'704);
  EXPECT_EQ(active_parameters(mixtral_8x7b()), 12'879'925'248);
  EXPECT_EQ(total_parameters(deepseek_v3()), 671'026'404'352);
  EXPECT_EQ(active_parameters(deepseek_v3()), 37'552'282'624);
  specs::ModelSpec all_mixtures = deepseek_v3();
  all_mixtures.mixture->first_dense_layers = 0;
  EXPECT_EQ(total_parameters(all_mixtures), 703'797'812'224);
  specs::ModelSpec qwen3 = llama(48, 2048, 32, 4, 6144, 151936);
  qwen3.attention.head_dim = 128;
  qwen3.attention.qk_norm = true;
  qwen3.mixture.emplace();
  qwen3.mixture->experts = 128;
  qwen3.mixture->top_k = 8;
  qwen3.mixture->expert_hidden = 768;
  EXPECT_EQ(total_parameters(qwen3), 30'532'122'624);
  EXPECT_EQ(active_parameters(qwen3), 3'353'032'704);
}

specs::ModelSpec t5(std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t head_dim,
                    std::int64_t ffn_hidden, bool gated, bool tied) {
  specs::ModelSpec model = llama(layers, hidden, heads, heads, ffn_hidden, 32128);
  model.encoder_layers = layers;
  model.attention.head_dim = head_dim;
  model.feed_forward.gated = gated;
  model.position_encoding = specs::PositionEncoding::relative;
  model.tied_embeddings = tied;
  return model;
}

TEST(Parameters, CountEncoderDecoders) {
  EXPECT_EQ(total_parameters(t5(8, 512, 6, 64, 1024, true, false)), 76'961'152);            // flan-t5-small
  EXPECT_EQ(total_parameters(t5(24, 1024, 128, 128, 65536, false, true)), 11'307'321'344);  // t5-11b
}

TEST(Parameters, LeavePredictionLayersOutOfThePublishedCount) {
  specs::ModelSpec model = deepseek_v3();
  model.prediction_layers = 1;
  EXPECT_EQ(total_parameters(model), 671'026'404'352);
  const specs::UnitRange all{0, specs::unit_count(specs::block_count(model))};
  EXPECT_GT(parameters_of_units(model, all, ShardDegrees{}).total(), 671'026'404'352 + 11'000'000'000);
}

TEST(Parameters, DivideExpertsByExpertAndExpertTensorDegreesOnly) {
  specs::ModelSpec model = mixtral_8x7b();
  model.vocabulary_multiple = 1;
  const specs::UnitRange all{0, specs::unit_count(model.layers)};
  const auto on_one_rank = [&](std::int64_t tensor, std::int64_t expert) {
    ShardDegrees degrees;
    degrees.attention_tensor = degrees.feed_forward_tensor = degrees.embedding_tensor =
        degrees.output_tensor = tensor;
    degrees.expert = expert;
    return parameters_of_units(model, all, degrees).total();
  };
  EXPECT_EQ(on_one_rank(2, 8), 6'440'620'032);
  EXPECT_EQ(on_one_rank(8, 2), 22'750'433'280);
  EXPECT_EQ(on_one_rank(1, 8), 7'242'780'672);
  EXPECT_EQ(on_one_rank(8, 8), 5'838'999'552);
}

TEST(Parameters, PadTheVocabularyToAMultipleOfTheTensorDegree) {
  specs::ModelSpec model = gpt(12, 768, 12, 50257, 1024);
  EXPECT_EQ(padded_vocabulary(model, 1), 50304);
  EXPECT_EQ(padded_vocabulary(model, 2), 50432);
  EXPECT_EQ(padded_vocabulary(model, 4), 50688);
  EXPECT_EQ(padded_vocabulary(model, 8), 51200);
}

TEST(Parameters, OfAdjoiningRangesAddUpToTheWhole) {
  specs::ModelSpec model = deepseek_v3();
  model.prediction_layers = 1;
  ShardDegrees degrees;
  degrees.attention_tensor = degrees.feed_forward_tensor = 8;
  degrees.expert = 16;
  const std::int64_t units = specs::unit_count(specs::block_count(model));
  const RankParameters whole = parameters_of_units(model, {0, units}, degrees);
  for (std::int64_t cut = 1; cut < units; ++cut) {
    RankParameters sum = parameters_of_units(model, {0, cut}, degrees);
    sum += parameters_of_units(model, {cut, units}, degrees);
    EXPECT_EQ(sum, whole) << cut;
  }
}

TEST(Parameters, CountATiedTableOnBothEndsOfAPipeline) {
  specs::ModelSpec model = gpt(4, 256, 8, 1000, 64);
  const std::int64_t units = specs::unit_count(model.layers);
  RankParameters sum = parameters_of_units(model, {0, 5}, ShardDegrees{});
  sum += parameters_of_units(model, {5, units}, ShardDegrees{});
  const RankParameters whole = parameters_of_units(model, {0, units}, ShardDegrees{});
  EXPECT_EQ(sum.total() - whole.total(), padded_vocabulary(model, 1) * 256);
}

}  // namespace
}  // namespace cost_models
