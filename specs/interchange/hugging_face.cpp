#include "specs/interchange/hugging_face.h"

#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "specs/interchange/hugging_face_families.h"
#include "specs/interchange/json_config.h"
#include "specs/language/checks.h"
#include "specs/language/defaults.h"
#include "specs/language/text_file.h"

namespace specs {

namespace {

/// Models of several kinds of input, with the family of their text part where it is not named.
std::string text_part_family(const std::string& model_type) {
  if (model_type == "llava") return "llama";
  if (model_type == "gemma3") return "gemma3_text";
  return {};
}

void read_family(JsonConfig& config, const std::string& model_type, ModelSpec& model) {
  const FamilyReader read = family_reader(model_type);
  if (read == nullptr) {
    const auto nearest = nearest_name(model_type, family_names());
    config.error(
        "model_type", fmt::format("model_type \"{}\" is not known", model_type),
        nearest ? fmt::format("did you mean \"{}\"? known: {}", *nearest, fmt::join(family_names(), ", "))
                : fmt::format("known: {}", fmt::join(family_names(), ", ")));
    return;
  }
  read(config, model);
  if (!config.defaulted().empty())
    config.note("", fmt::format("not given, defaults of the class are used: {}",
                                fmt::join(config.defaulted(), ", ")));
}

void check_sizes(const ModelSpec& model, JsonConfig& config) {
  if (model.attention.head_dim == 0)
    config.error("", fmt::format("hidden size {} % heads {} = {}, and no head size is given", model.hidden,
                                 model.attention.heads, model.hidden % model.attention.heads));
  if (!model.attention.latent && model.attention.heads % model.attention.kv_heads != 0)
    config.error("num_key_value_heads",
                 fmt::format("heads {} % key and value heads {} = {}", model.attention.heads,
                             model.attention.kv_heads, model.attention.heads % model.attention.kv_heads));
  if (const double parameters = rough_parameters(model); parameters > most_parameters)
    config.error(
        "", fmt::format("about {:.0e} parameters, above the bound of {:.0e}", parameters, most_parameters),
        "check the layers, the widths and the vocabulary");
}

}  // namespace

std::vector<std::string> hugging_face_model_types() {
  std::vector<std::string> names = family_names();
  names.insert(names.end(), {"gemma3", "llava"});
  return names;
}

Result<ModelSpec> import_hugging_face_text(std::string_view text, const std::string& file_name) {
  Result<ModelSpec> result;
  const Result<nlohmann::json> document = parse_json_object(text, file_name);
  result.diagnostics = document.diagnostics;
  if (!document) return result;
  Diagnostics& diagnostics = result.diagnostics;
  JsonConfig whole(*document, text, file_name, diagnostics);
  const std::string model_type = whole.text({"model_type"}, "");
  if (model_type.empty()) {
    whole.error("", "has no model_type", "is this the config.json of a Hugging Face model?");
    return result;
  }
  ModelSpec model;
  const std::string text_family = text_part_family(model_type);
  if (text_family.empty()) {
    read_family(whole, model_type, model);
  } else {
    // The sizes outside text_config are of the other parts; without it the text part is the class's own.
    static const nlohmann::json nothing = nlohmann::json::object();
    const auto found = document->find("text_config");
    const bool given = found != document->end() && !found->is_null();
    if (given && !found->is_object()) whole.error("text_config", "text_config: expected an object");
    JsonConfig part(given && found->is_object() ? *found : nothing, text, file_name, diagnostics);
    whole.note(given ? "text_config" : "",
               fmt::format("\"{}\" reads more than text; the text part alone is counted", model_type));
    read_family(part, part.text({"model_type"}, text_family), model);
  }
  if (diagnostics.has_errors()) return result;
  fill_in(model);
  check_sizes(model, whole);
  if (model.prediction_layers > 0)
    whole.note("num_nextn_predict_layers",
               fmt::format("{} multi-token-prediction layer(s) are trained but not counted in the total",
                           model.prediction_layers));
  if (diagnostics.has_errors()) return result;
  model.name = whole.text({"_name_or_path"}, "");
  if (model.name.empty()) model.name = model_type;
  result.value = std::move(model);
  return result;
}

Result<ModelSpec> import_hugging_face(const std::filesystem::path& path) {
  const Result<std::string> text = read_text_file(path);
  if (text) return import_hugging_face_text(*text, path.string());
  Result<ModelSpec> result;
  result.diagnostics = text.diagnostics;
  return result;
}

}  // namespace specs
