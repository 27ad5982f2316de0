#include "tests/published/nemo_recipes.h"

namespace published {
namespace {

struct Recipe {
  std::string_view release;  ///< "26.02.01"
  std::string_view device;
  std::int64_t pipeline = 1;
  std::int64_t virtual_stages = 1;
  std::int64_t expert = 1;
  bool block_scales = false;

  bool since(std::string_view first) const { return release >= first; }
  bool on(std::string_view name) const { return device.starts_with(name); }
  bool on_grace() const { return on("gb"); }
};

std::vector<std::string> deepseek(const Recipe& recipe) {
  if (recipe.on("h100"))
    return recipe.since("26.02") ? std::vector<std::string>{} : std::vector<std::string>{"expert_overlap"};
  if (recipe.on("b200"))
    return recipe.expert > 8 ? std::vector<std::string>{"partial_graphs", "expert_overlap"}
                             : std::vector<std::string>{};
  const bool whole = recipe.since("26.06") && recipe.block_scales;
  if (recipe.on("b300")) {
    if (whole && recipe.virtual_stages > 1) return {"full_graphs", "expert_overlap"};
    return recipe.pipeline <= 8 ? std::vector<std::string>{"partial_graphs"} : std::vector<std::string>{};
  }
  if (whole) return {"full_graphs", "expert_overlap"};
  // From 26.02 on the 8-bit recipe of GB300 runs two sequences at a time, without graphs.
  const bool without = recipe.on("gb300") && recipe.block_scales && recipe.since("26.02");
  return without ? std::vector<std::string>{} : std::vector<std::string>{"partial_graphs"};
}

std::vector<std::string> gpt_oss(const Recipe& recipe) {
  if (recipe.on("h100") || recipe.on("b200")) return {};
  if (recipe.on_grace() && recipe.since("26.06") && recipe.block_scales)
    return {"full_graphs", "expert_overlap"};
  if (recipe.on("gb200"))
    return recipe.since("26.04.01") ? std::vector<std::string>{"expert_overlap"} : std::vector<std::string>{};
  return {"partial_graphs"};
}

std::vector<std::string> qwen3(const Recipe& recipe) {
  if (recipe.on("h100")) return {};
  if (recipe.since("26.06") && recipe.block_scales) return {"full_graphs", "expert_overlap"};
  return {"partial_graphs"};
}

}  // namespace

std::vector<std::string> recipe_features(const Row& row) {
  const std::string_view family = row.text("family");
  if (!family.starts_with("nemo-") || row.integer("experts") == 0) return {};
  Recipe recipe;
  recipe.release = family.substr(5);
  if (!recipe.since("25.11")) return {};
  recipe.device = row.text("gpu");
  recipe.pipeline = row.integer("pp", 1);
  recipe.virtual_stages = row.integer("vp", 1);
  recipe.expert = row.integer("ep", 1);
  recipe.block_scales = row.text("precision") == "mxfp8";
  const std::string_view model = row.text("model");
  if (model.starts_with("DeepSeek")) return deepseek(recipe);
  if (model.starts_with("GPT-OSS")) return gpt_oss(recipe);
  if (model.starts_with("Qwen3")) return qwen3(recipe);
  return {};
}

}  // namespace published
