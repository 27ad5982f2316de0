// The rules of single module kinds: tensor degrees below the mesh's, what their copies do, and how the output
// layer is split.
#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "planner/space/legality.h"
#include "planner/space/module_treatments.h"
#include "planner/space/refusals.h"

namespace planner {
namespace {

using specs::ModuleTreatments;
using specs::OutputLayerMode;
using specs::ReplicaWork;

/// A degree of 0 is the mesh's, and may be named as either.
MaybeRefusal restricted_degree(std::string_view key, const std::vector<std::int64_t>& named,
                               std::int64_t degree, std::int64_t tensor) {
  if (named.empty() || contains(named, degree) || (degree == 0 && contains(named, tensor)))
    return std::nullopt;
  return Refusal{Constraint::search_restriction,
                 fmt::format("{} = {} is not in [search] {} = [{}]", key, degree == 0 ? tensor : degree, key,
                             fmt::join(named, ", "))};
}

Refusal no_effect(std::string text) { return {Constraint::model_shape, std::move(text)}; }

}  // namespace

MaybeRefusal Legality::modules(const MeshDegrees& mesh, const ModuleTreatments& modules) const {
  if (mesh.tensor == 1) {
    if (modules == ModuleTreatments{}) return std::nullopt;
    return no_effect("treatments of single modules have no effect with tensor 1");
  }
  const bool token_parallel = modules.output_mode == OutputLayerMode::token_parallel;
  if (token_parallel && !contains(stack_.output_modes, modules.output_mode))
    return Refusal{Constraint::software_stack,
                   fmt::format("the stack \"{}\" has no token-parallel output layer", stack_.name)};
  for (const ModuleDegree& module : module_degrees) {
    const std::int64_t degree = modules.*module.degree;
    const bool of_token_parallel = token_parallel && module.degree == &ModuleTreatments::output_tensor;
    if (degree == 0 && !of_token_parallel) {
      if (auto refusal =
              restricted_degree(module.key, experiment_.search.*module.restriction, 0, mesh.tensor))
        return refusal;
      continue;
    }
    if (of_token_parallel && degree != 1)
      return no_effect("a token-parallel output layer holds the whole table: output_tensor = 1");
    if (!of_token_parallel && !stack_.module_tensor_degrees)
      return Refusal{Constraint::software_stack,
                     fmt::format("the stack \"{}\" has no tensor degrees of single modules", stack_.name)};
    if (degree >= mesh.tensor || mesh.tensor % degree != 0)
      return no_effect(fmt::format("{} {} is no divisor below tensor {}", module.key, degree, mesh.tensor));
    if (auto refusal =
            restricted_degree(module.key, experiment_.search.*module.restriction, degree, mesh.tensor))
      return refusal;
  }
  const specs::ModelSpec& model = experiment_.model;
  const std::int64_t kv_heads = model.attention.kv_heads, attention = modules.attention_tensor;
  if (attention > 0 && !model.attention.latent && kv_heads % attention != 0 && attention % kv_heads != 0)
    return no_effect(fmt::format("{} key-value heads and attention_tensor {}: neither divides the other",
                                 kv_heads, attention));
  if (model.tied_embeddings && (modules.embedding_tensor != 0 || modules.embedding_work != ReplicaWork{}))
    return no_effect("a tied embedding lies as the output layer does");
  if (modules.attention_work != ReplicaWork::redundant)
    return no_effect("copies of the attention that share the tokens are data or context ranks");
  const bool shares_feed_forward = modules.feed_forward_work == ReplicaWork::token_share;
  const bool shares_embedding = modules.embedding_work == ReplicaWork::token_share;
  if ((shares_feed_forward && modules.feed_forward_tensor == 0) ||
      (shares_embedding && modules.embedding_tensor == 0))
    return no_effect("one copy has no others to share the tokens with");
  if (token_parallel || shares_feed_forward || shares_embedding)
    if (auto refusal = positions_over_tensor(mesh)) return refusal;
  const std::vector<OutputLayerMode>& named = experiment_.search.output_mode;
  if (named.empty() || contains(named, modules.output_mode)) return std::nullopt;
  return Refusal{Constraint::search_restriction,
                 fmt::format("output_mode = \"{}\" is not in [search] output_mode = [{}]",
                             specs::name_of(modules.output_mode), specs::name_of(named.front()))};
}

std::vector<ModuleTreatments> Legality::module_choices(const MeshDegrees& mesh) const {
  constexpr std::array works{ReplicaWork::redundant, ReplicaWork::token_share};
  std::vector<std::int64_t> degrees{0};
  if (stack_.module_tensor_degrees)
    for (std::int64_t degree = mesh.tensor / 2; degree >= 1; --degree)
      if (mesh.tensor % degree == 0) degrees.push_back(degree);
  std::vector<ModuleTreatments> choices;
  const auto add = [&](const ModuleTreatments& modules) {
    if (!this->modules(mesh, modules)) choices.push_back(modules);
  };
  const auto with_outputs = [&](ModuleTreatments modules) {
    for (const std::int64_t output : degrees) {
      modules.output_tensor = output;
      add(modules);
    }
    modules.output_tensor = 1;
    modules.output_mode = OutputLayerMode::token_parallel;
    add(modules);
  };
  ModuleTreatments modules;
  for (const std::int64_t attention : degrees) {
    modules.attention_tensor = attention;
    for (const std::int64_t feed_forward : degrees)
      for (const ReplicaWork feed_forward_work : works) {
        if (feed_forward == 0 && feed_forward_work != ReplicaWork::redundant) continue;
        modules.feed_forward_tensor = feed_forward;
        modules.feed_forward_work = feed_forward_work;
        for (const std::int64_t embedding : degrees)
          for (const ReplicaWork embedding_work : works) {
            if (embedding == 0 && embedding_work != ReplicaWork::redundant) continue;
            modules.embedding_tensor = embedding;
            modules.embedding_work = embedding_work;
            with_outputs(modules);
          }
      }
  }
  return choices;
}

std::vector<std::int64_t> Legality::micro_batch_groups(std::int64_t pipeline) const {
  const std::vector<std::int64_t>& named = experiment_.search.micro_batch_group;
  if (named.empty()) return {0};
  std::vector<std::int64_t> groups;
  for (const std::int64_t group : named) groups.push_back(group == pipeline ? 0 : group);
  std::sort(groups.begin(), groups.end());
  groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
  return groups;
}

}  // namespace planner
