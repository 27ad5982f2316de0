// Random experiments whose spaces are small enough to be priced one by one, on every stack of the catalog.
#pragma once

#include <initializer_list>
#include <random>
#include <stdexcept>

#include "planner/pricing/inner_choice.h"
#include "planner/space/space.h"
#include "specs/language/catalog.h"
#include "specs/language/read_experiment.h"

namespace planner::testing {

class RandomExperiments {
 public:
  explicit RandomExperiments(std::uint32_t seed) : random_(seed) {}

  /// One whose space has between 1 and `most` members, inner choices included; with `uneven` some of them
  /// are uneven cuts.
  specs::Experiment next(std::uint64_t most, bool uneven = false) {
    for (;;) {
      const specs::Experiment experiment = any();
      if (specs::check_experiment(experiment).has_errors()) continue;
      const auto stack = specs::stack_of(experiment.training);
      const Space space(experiment, *stack);
      if (space.outer_points() < 1 || space.outer_points() > most) continue;
      const cost_models::Estimator estimator(experiment);
      const InnerChoices inner(experiment, *stack, estimator);
      Count members = 0;
      bool cut = false;
      for (const MeshSpace& mesh : space.meshes())
        space.for_each(mesh, [&](const specs::RegularPlacement& outer) {
          const Count choices = inner.count(outer);
          members += choices;
          cut = cut || (inner.cuts_are_free(outer) && choices > 1);
        });
      if (members >= 1 && members <= most && (cut || !uneven)) return experiment;
    }
  }

 private:
  std::int64_t pick(std::initializer_list<std::int64_t> values) {
    return *(values.begin() + std::uniform_int_distribution<std::size_t>(0, values.size() - 1)(random_));
  }
  bool sometimes(int one_in) { return std::uniform_int_distribution<int>(1, one_in)(random_) == 1; }

  specs::Experiment any() {
    static const specs::Experiment base = [] {
      const auto read = specs::read_experiment("examples/gpt3-175b.toml",
                                               {"model.preset=gpt2-medium", "training.sequence_length=1024"});
      if (!read) throw std::runtime_error(read.diagnostics.render());
      return *read;
    }();
    specs::Experiment experiment = base;
    shape_model(experiment.model);
    specs::ClusterGroup& group = experiment.cluster.groups.front();
    group.node.devices = pick({1, 2, 4, 8});
    group.node.link_domain_devices = group.node.devices;
    group.nodes = pick({1, 1, 2, 3, 4});
    group.node.device.memory_bytes = pick({3000, 3300, 3600, 5000, 7000, 12000, 80000}) << 20;
    group.node.host_memory_bytes = pick({1, 8, 64, 1000}) << 30;
    experiment.cluster.network.node_bytes_per_second *= sometimes(3) ? 0.02 : 1;
    experiment.cluster.failures_per_node_hour = 0.001;
    specs::TrainingSpec& training = experiment.training;
    training.sequence_length = pick({256, 1024});
    training.global_batch = pick({2, 4, 6, 8, 12, 16});
    training.tokens = 0;
    const std::vector<std::string> stacks = specs::catalog_names(specs::CatalogKind::stack);
    training.stack = stacks[static_cast<std::size_t>(random_() % stacks.size())];
    const auto stack = specs::catalog_stack(training.stack);
    training.attention = stack->attention.front();
    restrict(experiment.search);
    if (sometimes(3)) treat_modules(experiment);
    return experiment;
  }

  void shape_model(specs::ModelSpec& model) {
    model.layers = pick({1, 2, 3, 4, 5, 6, 7, 8});
    model.attention.heads = model.attention.kv_heads = pick({2, 4, 6, 8});
    if (sometimes(3)) model.attention.kv_heads = 2;
    model.attention.head_dim = 64;
    model.hidden = 64 * model.attention.heads * pick({1, 2});
    model.feed_forward.hidden = 4 * model.hidden;
    model.vocabulary = pick({1000, 32000});
    model.tied_embeddings = sometimes(2);
    if (sometimes(3)) {
      specs::MixtureSpec mixture;
      mixture.experts = pick({2, 4, 8});
      mixture.top_k = pick({1, 2});
      mixture.expert_hidden = 2 * model.hidden;
      mixture.first_dense_layers = model.layers > 2 && sometimes(2) ? 1 : 0;
      model.mixture = mixture;
    }
  }

  void restrict(specs::SearchSpec& search) {
    search = {};
    constexpr std::array objectives{specs::Objective::step_time, specs::Objective::cost,
                                    specs::Objective::energy, specs::Objective::goodput};
    search.objective = objectives[random_() % objectives.size()];
    if (sometimes(2))
      search.offload_optimizer = search.offload_parameters = search.offload_activations = halves();
    if (sometimes(3)) search.offload_activations = {specs::OffloadDevice::none};
    if (sometimes(5)) search.micro_batch = {1, 2};
    if (sometimes(5)) search.context = {1};
    if (sometimes(6)) search.uneven_stages = false;
    if (sometimes(8)) search.recomputation = {specs::Recomputation::full};
    if (sometimes(8)) search.tensor = {1, 2};
    if (sometimes(6)) search.idle_nodes = 1;
    if (sometimes(6)) search.local_steps = {1, 4};
    if (sometimes(4)) search.micro_batch_group = {0, pick({2, 3, 4, 6})};
    if (sometimes(4)) search.delayed_update = {false, true};
  }

  /// Nothing, half or all of a part, on every device.
  static std::vector<specs::OffloadOption> halves() {
    using enum specs::OffloadDevice;
    return {none, {cpu, 4}, {cpu, 8}, {nvme, 4}, {nvme, 8}};
  }

  /// One or two module kinds may have degrees of their own.
  void treat_modules(specs::Experiment& experiment) {
    experiment.training.stack_features = {"module_tensor_degrees", "token_parallel_output"};
    specs::SearchSpec& search = experiment.search;
    if (!sometimes(3)) search.attention_tensor = {0};
    if (!sometimes(3)) search.feed_forward_tensor = {0, 1};
    if (!sometimes(4)) search.embedding_tensor = {0};
    if (!sometimes(4)) search.output_tensor = {0, 1};
    if (sometimes(3)) search.output_mode = {specs::OutputLayerMode::token_parallel};
    if (sometimes(2)) search.offload_optimizer = {specs::OffloadDevice::none};
  }

  std::mt19937 random_;
};

}  // namespace planner::testing
