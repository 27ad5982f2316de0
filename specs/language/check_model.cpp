#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "specs/language/checks.h"

namespace specs {

double rough_parameters(const ModelSpec& model) {
  const auto hidden = static_cast<double>(model.hidden);
  const auto heads = static_cast<double>(model.attention.heads + model.attention.kv_heads);
  const double attention = 2 * hidden * heads * static_cast<double>(model.attention.head_dim);
  double feed_forward = 3 * hidden * static_cast<double>(model.feed_forward.hidden);
  if (model.mixture)
    feed_forward +=
        3 * hidden *
        (static_cast<double>(model.mixture->experts) * static_cast<double>(model.mixture->expert_hidden) +
         static_cast<double>(model.mixture->shared_expert_hidden));
  const auto layers = static_cast<double>(model.layers + model.encoder_layers);
  const auto rows = static_cast<double>(model.vocabulary) + static_cast<double>(model.positions);
  return layers * (attention + feed_forward) + 2 * hidden * rows;
}

namespace {

void check_needed(const ModelSpec& model, CheckReport& report) {
  std::vector<std::string> missing;
  const auto need = [&](std::int64_t value, const char* key) {
    if (value == 0 && !report.given(std::string("model.") + key)) missing.emplace_back(key);
  };
  need(model.layers, "layers");
  need(model.hidden, "hidden");
  need(model.attention.heads, "heads");
  if (missing.empty()) return;
  std::string names = missing.front();
  for (std::size_t i = 1; i < missing.size(); ++i) names += ", " + missing[i];
  report.error(
      {"model"}, fmt::format("the model lacks {}", names),
      "name a preset (model.preset = \"gpt3-175b\"; `dsplan catalog model` lists them) or give layers, "
      "hidden and heads");
}

void check_heads(const ModelSpec& model, CheckReport& report) {
  const AttentionSpec& attention = model.attention;
  if (attention.heads <= 0 || model.hidden <= 0) return;
  if (attention.kv_heads > 0 && !attention.latent && attention.heads % attention.kv_heads != 0)
    report.error(
        {"model.kv_heads", "model.heads"},
        fmt::format("model.heads {} % model.kv_heads {} = {}: every key and value head serves the same "
                    "number of query heads",
                    attention.heads, attention.kv_heads, attention.heads % attention.kv_heads),
        fmt::format("kv_heads may be {}", divisors_text(attention.heads)));
  if (attention.head_dim == 0 && !report.given("model.head_dim"))
    report.error({"model.heads", "model.hidden"},
                 fmt::format("model.hidden {} % model.heads {} = {}: the heads do not divide the width",
                             model.hidden, attention.heads, model.hidden % attention.heads),
                 fmt::format("heads may be {}; or give head_dim", divisors_text(model.hidden)));
  if (model.position_encoding == PositionEncoding::rotary && attention.head_dim > 0 && !attention.latent) {
    const double rotated = static_cast<double>(attention.head_dim) * model.rotary.fraction;
    if (rotated < 2 || static_cast<std::int64_t>(rotated) % 2 != 0)
      report.error(
          {"model.rotary.fraction", "model.head_dim", "model.heads"},
          fmt::format("model.head_dim {} · model.rotary.fraction {} = {}: rotary positions turn pairs, so "
                      "this must be an even number of at least 2",
                      attention.head_dim, model.rotary.fraction, rotated));
  }
}

void check_mixture(const ModelSpec& model, CheckReport& report) {
  if (!model.mixture) return;
  const MixtureSpec& mixture = *model.mixture;
  if (mixture.experts == 0) {
    if (!report.given("model.mixture.experts"))
      report.error({"model.mixture"}, "model.mixture lacks experts", "give experts and top_k");
    return;
  }
  if (mixture.top_k > mixture.experts)
    report.error(
        {"model.mixture.top_k", "model.mixture.experts"},
        fmt::format("model.mixture.top_k {} > model.mixture.experts {}", mixture.top_k, mixture.experts),
        fmt::format("top_k may be 1 to {}", mixture.experts));
  if (mixture.first_dense_layers >= model.layers && model.layers > 0)
    report.error({"model.mixture.first_dense_layers", "model.layers"},
                 fmt::format("model.mixture.first_dense_layers {} ≥ model.layers {}: no layer is a mixture",
                             mixture.first_dense_layers, model.layers),
                 "leave the mixture out, or make fewer layers dense");
  if (mixture.shared_expert_hidden > 0 && mixture.shared_experts == 0)
    report.error({"model.mixture.shared_expert_hidden"},
                 fmt::format("model.mixture.shared_expert_hidden {} without shared experts",
                             mixture.shared_expert_hidden),
                 "give shared_experts");
  if (mixture.shared_expert_gate && mixture.shared_experts == 0)
    report.error({"model.mixture.shared_expert_gate"},
                 "model.mixture.shared_expert_gate without shared experts", "give shared_experts");
}

}  // namespace

void check_model(const ModelSpec& model, CheckReport& report) {
  check_needed(model, report);
  check_heads(model, report);
  check_mixture(model, report);
  const bool has_table = model.position_encoding == PositionEncoding::learned ||
                         model.position_encoding == PositionEncoding::relative;
  if (!has_table && model.positions > 0)
    report.error({"model.positions", "model.position_encoding"},
                 fmt::format("model.positions {} with position_encoding \"{}\", which has no table",
                             model.positions, name_of(model.position_encoding)),
                 "leave positions out");
  if (model.normalization == Normalization::rms_norm && model.norm_bias && report.given("model.norm_bias"))
    report.error({"model.norm_bias"},
                 "model.norm_bias = true with normalization \"rms_norm\", which has none",
                 "leave norm_bias out");
  if (model.attention.sliding_every > 1 && model.attention.sliding_window == 0)
    report.error(
        {"model.sliding_every"},
        fmt::format("model.sliding_every {} without a sliding window", model.attention.sliding_every),
        "give sliding_window");
  const double parameters = rough_parameters(model);
  if (parameters > most_parameters)
    report.error({"model.layers", "model.hidden", "model"},
                 fmt::format("the model has about {:.0e} parameters, above the bound of {:.0e}", parameters,
                             most_parameters),
                 "check layers, hidden, ffn_hidden, experts and vocabulary");
}

}  // namespace specs
