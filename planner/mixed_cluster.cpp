#include "planner/mixed_cluster.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>

#include "planner/inner_choice.h"
#include "planner/stage_chain.h"

namespace planner {
namespace {

using specs::RegularPlacement;

constexpr double never = std::numeric_limits<double>::infinity();

/// What became of the choices of one mesh.
struct MeshAccount {
  Count solved = 0, infeasible = 0, bounded = 0;
  double best = never;          ///< of the solved
  double least_solved = never;  ///< no solved choice is below
  double least_bounded = never;
  Count all() const { return solved + infeasible + bounded; }
};

class MixedSearch {
 public:
  MixedSearch(const specs::Experiment& experiment, const specs::StackSpec& stack,
              const cost_models::Estimator& estimator)
      : experiment_(experiment),
        estimator_(estimator),
        inner_(experiment, stack, estimator),
        blocks_(specs::block_count(experiment.model)),
        groups_(experiment.cluster.groups.size()) {
    const specs::UnitRange all{0, specs::unit_count(blocks_)};
    whole_ = cost_models::unit_counts(experiment.model, all, specs::Recomputation::none, 0);
  }

  MeshAccount search(const Space& space, const MeshSpace& mesh, const std::atomic<bool>* stop) {
    MeshAccount account;
    plain_fits_.clear();
    space.for_each(mesh, [&](const RegularPlacement& outer) {
      if (stop != nullptr && stop->load(std::memory_order_relaxed)) {
        complete_ = false;
        return;
      }
      if (!offloads_as_asked(outer)) return;
      if (stages_lie_in_groups(outer)) try_unequal_stages(outer, account);
      if (replicas_lie_in_groups(outer)) try_unequal_shares(outer, account);
    });
    return account;
  }

  const std::optional<specs::Placement>& best() const { return best_; }
  double best_seconds() const { return best_seconds_; }
  bool complete() const { return complete_; }

 private:
  /// Whole parts, unless [search] names the eighths.
  bool offloads_as_asked(const RegularPlacement& outer) const {
    if (!experiment_.search.offload_eighths.empty()) return true;
    const auto whole = [](const specs::OffloadTreatment& treatment) { return treatment.eighths % 8 == 0; };
    return whole(outer.offload.optimizer) && whole(outer.offload.parameters) &&
           whole(outer.offload.activations);
  }

  std::int64_t devices(std::size_t group) const { return experiment_.cluster.groups[group].devices(); }

  bool stages_lie_in_groups(const RegularPlacement& outer) const {
    if (!inner_.cuts_are_free(outer)) return false;
    const std::int64_t rank = outer.tensor * outer.context * outer.data;
    for (std::size_t group = 0; group < groups_; ++group)
      if (devices(group) % rank != 0) return false;
    return true;
  }
  bool replicas_lie_in_groups(const RegularPlacement& outer) const {
    if (groups_ != 2 || !experiment_.search.unequal_shares) return false;
    const std::int64_t replica = outer.tensor * outer.context * outer.pipeline;
    return devices(0) % replica == 0 && devices(1) % replica == 0;
  }

  std::vector<cost_models::StagePricer> pricers_of(const RegularPlacement& outer) const {
    std::vector<cost_models::StagePricer> pricers;
    for (std::size_t group = 0; group < groups_; ++group)
      pricers.push_back(estimator_.stage_pricer(outer, static_cast<std::int64_t>(group)));
    return pricers;
  }

  /// Whether the point recomputes or offloads where the same point without fits, whatever the order of the
  /// groups: both only take longer, so that it is no better, and what bounds the other bounds it.
  bool plain_point_fits(const RegularPlacement& outer, bool cut) {
    RegularPlacement plain = outer;
    plain.recomputation = specs::Recomputation::none;
    plain.recomputed_modules = 0;
    plain.offload = {};
    if (plain == outer) return false;
    const PlainKey key{cut,
                       plain.micro_batch,
                       plain.schedule,
                       plain.virtual_stages,
                       plain.sequence_parallel,
                       plain.zero.stage,
                       plain.zero.scope};
    const auto [known, first] = plain_fits_.try_emplace(key);
    if (!first) return known->second;
    const std::vector<cost_models::StagePricer> pricers = pricers_of(plain);
    if (!cut) return known->second = fits(plain, pricers, specs::regular_placement(plain, blocks_));
    const RecomputedLayers none(experiment_.search, plain);
    std::vector<std::size_t> order(groups_);
    std::iota(order.begin(), order.end(), 0u);
    bool all = true;
    do {
      const StageChain chain(stage_devices(plain, pricers, order), plain, blocks_,
                             places_for_cuts(blocks_, inner_.cuts_fall_inside_layers()), none);
      all = any_partition_fits(chain);
    } while (all && std::next_permutation(order.begin(), order.end()));
    return known->second = all;
  }

  std::vector<StageDevices> stage_devices(const RegularPlacement& outer,
                                          const std::vector<cost_models::StagePricer>& pricers,
                                          const std::vector<std::size_t>& order) const {
    const std::int64_t rank_devices = outer.tensor * outer.context * outer.data;
    std::vector<StageDevices> stages;
    for (const std::size_t group : order) {
      const auto index = static_cast<std::int64_t>(group);
      const StageDevices each{&pricers[group], estimator_.usable_device_bytes(index),
                              estimator_.usable_host_bytes(index)};
      stages.insert(stages.end(), static_cast<std::size_t>(devices(group) / rank_devices), each);
    }
    return stages;
  }

  void note(const specs::Placement& placement, double seconds) {
    if (seconds >= best_seconds_) return;
    best_seconds_ = seconds;
    best_ = placement;
  }

  /// The cuts of one order, where the stages recompute.
  Count cuts_of(const RegularPlacement& outer) const { return inner_.count(outer); }

  void try_unequal_stages(const RegularPlacement& outer, MeshAccount& account) {
    const std::vector<cost_models::StagePricer> pricers = pricers_of(outer);
    const std::int64_t rank_devices = outer.tensor * outer.context * outer.data;
    double speed = 0;
    for (std::size_t group = 0; group < groups_; ++group)
      speed += static_cast<double>(devices(group) / rank_devices) / pricers[group].stage(whole_).total();
    const double bound = pricers.front().shape().micro_batches / speed;
    std::vector<std::size_t> order(groups_);
    std::iota(order.begin(), order.end(), 0u);
    const RecomputedLayers allowed(experiment_.search, outer);
    const bool dominated = bound < best_seconds_ && plain_point_fits(outer, true);
    do {
      const Count choices = cuts_of(outer);
      if (dominated) {
        account.bounded += choices;
        continue;
      }
      if (bound >= best_seconds_) {
        account.bounded += choices;
        account.least_bounded = std::min(account.least_bounded, bound);
        continue;
      }
      solve_stages(outer, pricers, order, allowed, choices, account);
    } while (std::next_permutation(order.begin(), order.end()));
  }

  void solve_stages(const RegularPlacement& outer, const std::vector<cost_models::StagePricer>& pricers,
                    const std::vector<std::size_t>& order, const RecomputedLayers& allowed,
                    const Count& choices, MeshAccount& account) {
    const std::int64_t rank_devices = outer.tensor * outer.context * outer.data;
    std::vector<std::int64_t> group_of_stage;
    for (const std::size_t group : order)
      group_of_stage.insert(group_of_stage.end(), static_cast<std::size_t>(devices(group) / rank_devices),
                            static_cast<std::int64_t>(group));
    StageChain chain(stage_devices(outer, pricers, order), outer, blocks_,
                     places_for_cuts(blocks_, inner_.cuts_fall_inside_layers()), allowed);
    const auto partition = best_cut(chain, outer.recomputation != specs::Recomputation::none);
    if (!partition) {
      account.infeasible += choices;
      return;
    }
    account.solved += choices;
    account.best = std::min(account.best, partition->price);
    account.least_solved = std::min(account.least_solved, partition->lower_bound);
    if (partition->price >= best_seconds_) return;
    specs::Placement placement = specs::regular_placement(outer, blocks_);
    for (std::size_t index = 0; index < partition->parts.size(); ++index) {
      specs::PipelineStage& stage = placement.stages[index];
      stage.units = {partition->parts[index].first, partition->parts[index].end};
      stage.device_group = group_of_stage[index];
      set_recomputation(outer, blocks_, partition->parts[index].recomputed_layers, stage);
    }
    note(placement, partition->price);
  }

  bool fits(const RegularPlacement& outer, const std::vector<cost_models::StagePricer>& pricers,
            const specs::Placement& even) const {
    std::vector<cost_models::UnitCounts> of_rank(static_cast<std::size_t>(outer.pipeline));
    for (const specs::PipelineStage& stage : even.stages)
      of_rank[static_cast<std::size_t>(stage.pipeline_rank)] +=
          cost_models::unit_counts(experiment_.model, stage);
    for (std::size_t group = 0; group < groups_; ++group)
      for (std::size_t rank = 0; rank < of_rank.size(); ++rank) {
        const auto bytes = pricers[group].memory(static_cast<std::int64_t>(rank), of_rank[rank]);
        const auto index = static_cast<std::int64_t>(group);
        if (bytes.device > estimator_.usable_device_bytes(index) ||
            bytes.host_per_node > estimator_.usable_host_bytes(index))
          return false;
      }
    return true;
  }

  /// Shares of the two groups' replicas that add up to all micro-batches.
  struct Shares {
    std::int64_t replicas[2];
    std::int64_t step[2];       ///< from one solution to the next, one up and one down
    std::int64_t first = 0;     ///< the smallest share of group 0
    std::int64_t of_first = 0;  ///< group 1's share there
    std::int64_t count = 0;
    std::array<std::int64_t, 2> at(std::int64_t index) const {
      return {first + index * step[0], of_first - index * step[1]};
    }
  };

  Shares shares_of(const RegularPlacement& outer) const {
    const std::int64_t replica = outer.tensor * outer.context * outer.pipeline;
    const std::int64_t total = outer.data * outer.accumulation;
    Shares shares{{devices(0) / replica, devices(1) / replica}, {1, 1}};
    const std::int64_t common = std::gcd(shares.replicas[0], shares.replicas[1]);
    shares.step[0] = shares.replicas[1] / common;
    shares.step[1] = shares.replicas[0] / common;
    for (std::int64_t share = 1; share <= shares.step[0]; ++share) {
      const std::int64_t rest = total - share * shares.replicas[0];
      if (rest < shares.replicas[1] || rest % shares.replicas[1] != 0) continue;
      shares.first = share;
      shares.of_first = rest / shares.replicas[1];
      shares.count = (shares.of_first - 1) / shares.step[1] + 1;
      break;
    }
    return shares;
  }

  void try_unequal_shares(const RegularPlacement& outer, MeshAccount& account) {
    const Shares shares = shares_of(outer);
    if (shares.count == 0) return;
    const std::vector<cost_models::StagePricer> pricers = pricers_of(outer);
    double speed = 0;
    for (std::size_t group = 0; group < 2; ++group)
      speed +=
          static_cast<double>(shares.replicas[group] * outer.pipeline) / pricers[group].stage(whole_).total();
    const double bound = static_cast<double>(outer.data * outer.accumulation) / speed;
    if (bound >= best_seconds_) {
      account.bounded += shares.count;
      account.least_bounded = std::min(account.least_bounded, bound);
      return;
    }
    if (plain_point_fits(outer, false)) {
      account.bounded += shares.count;
      return;
    }
    specs::Placement placement = specs::regular_placement(outer, blocks_);
    if (!fits(outer, pricers, placement)) {
      account.infeasible += shares.count;
      return;
    }
    const auto set = [&](std::int64_t index) {
      const auto micro_batches = shares.at(index);
      placement.replica_shares = {{shares.replicas[0], micro_batches[0], 0},
                                  {shares.replicas[1], micro_batches[1], 1}};
    };
    // Group 0's time rises from one solution to the next, group 1's falls: the best is where they cross.
    const auto seconds = [&](std::int64_t index, std::size_t group) {
      return share_seconds(outer, placement, shares.at(index)[group], static_cast<std::int64_t>(group));
    };
    std::int64_t low = 0, high = shares.count - 1;
    while (low < high) {
      const std::int64_t middle = low + (high - low) / 2;
      if (seconds(middle, 0) >= seconds(middle, 1))
        high = middle;
      else
        low = middle + 1;
    }
    double least = never;
    for (const std::int64_t index : {low - 1, low}) {
      if (index < 0) continue;
      const double step = std::max(seconds(index, 0), seconds(index, 1));
      if (step >= least) continue;
      least = step;
      set(index);
    }
    account.solved += shares.count;
    account.best = std::min(account.best, least);
    account.least_solved = std::min(account.least_solved, least);
    note(canonical(placement), least);
  }

  double share_seconds(const RegularPlacement& outer, const specs::Placement& even,
                       std::int64_t micro_batches, std::int64_t group) const {
    RegularPlacement share = outer;
    share.accumulation = micro_batches;
    const cost_models::StagePricer pricer = estimator_.stage_pricer(share, group);
    std::vector<cost_models::StageSeconds> stages;
    std::vector<cost_models::UnitCounts> of_rank(static_cast<std::size_t>(outer.pipeline));
    for (const specs::PipelineStage& stage : even.stages) {
      const cost_models::UnitCounts counts = cost_models::unit_counts(experiment_.model, stage);
      of_rank[static_cast<std::size_t>(stage.pipeline_rank)] += counts;
      stages.push_back(pricer.stage(counts));
    }
    std::vector<cost_models::StepEndSeconds> ends;
    for (const cost_models::UnitCounts& counts : of_rank) ends.push_back(pricer.end(counts));
    return pricer.step(stages, ends);
  }

  /// Shares that are equal on one kind of devices need no list; of two kinds they name the groups.
  static specs::Placement canonical(specs::Placement placement) {
    std::int64_t most = 0;
    for (const specs::ReplicaShare& share : placement.replica_shares)
      most = std::max(most, share.micro_batches);
    placement.accumulation = most;
    return placement;
  }

  using PlainKey = std::tuple<bool, std::int64_t, specs::ScheduleKind, std::int64_t, bool, std::int64_t,
                              specs::ShardScope>;

  const specs::Experiment& experiment_;
  const cost_models::Estimator& estimator_;
  const InnerChoices inner_;
  const std::int64_t blocks_;
  const std::size_t groups_;
  cost_models::UnitCounts whole_;
  std::optional<specs::Placement> best_;
  double best_seconds_ = never;
  bool complete_ = true;
  std::map<PlainKey, bool> plain_fits_;  ///< of the mesh that is searched
};

std::vector<specs::RegionDimension> dimensions_of(const MeshDegrees& mesh, bool experts) {
  std::vector<specs::RegionDimension> dimensions{{"tensor", {std::to_string(mesh.tensor)}},
                                                 {"context", {std::to_string(mesh.context)}},
                                                 {"pipeline", {std::to_string(mesh.pipeline)}},
                                                 {"data", {std::to_string(mesh.data)}}};
  if (experts) {
    dimensions.push_back({"expert", {std::to_string(mesh.expert)}});
    dimensions.push_back({"expert_tensor", {std::to_string(mesh.expert_tensor)}});
  }
  return dimensions;
}

}  // namespace

MixedResult plan_mixed_cluster(const specs::Experiment& experiment, const specs::StackSpec& stack,
                               const Space& space, const cost_models::Estimator& estimator,
                               const std::atomic<bool>* stop) {
  MixedSearch search(experiment, stack, estimator);
  MixedResult result;
  Count solved = 0, infeasible = 0, bounded = 0;
  double least = never;
  for (const MeshSpace& mesh : space.meshes()) {
    // Groups are ranges of ranks, which other orders of the axes would scatter over the stages.
    if (mesh.order != specs::default_axis_order) continue;
    const MeshAccount account = search.search(space, mesh, stop);
    solved += account.solved;
    infeasible += account.infeasible;
    bounded += account.bounded;
    least = std::min({least, account.least_solved, account.least_bounded});
    const auto region = [&](specs::RegionKind kind, const Count& candidates, std::string rule) {
      specs::CertificateRegion entry;
      entry.kind = kind;
      entry.dimensions = dimensions_of(mesh.mesh, space.has_experts());
      entry.candidates = candidates.str();
      entry.rule = std::move(rule);
      return entry;
    };
    if (account.solved > 0) {
      result.certificate.regions.push_back(
          region(specs::RegionKind::optimized, account.solved, "stage-partition"));
      result.certificate.regions.back().best = account.best;
    }
    if (account.infeasible > 0) {
      result.certificate.regions.push_back(
          region(specs::RegionKind::infeasible, account.infeasible, "device memory"));
      result.certificate.regions.back().reason = "no cut fits the memory of both kinds of devices";
    }
    if (account.bounded > 0) {
      result.certificate.regions.push_back(
          region(specs::RegionKind::bounded, account.bounded, "shared-work"));
      result.certificate.regions.back().bound = account.least_bounded;
    }
  }
  for (specs::CertificateRegion& region : result.certificate.regions)
    if (std::isinf(region.bound)) region.bound = least;
  result.best = search.best();
  result.step_seconds = search.best_seconds();
  specs::Certificate& certificate = result.certificate;
  certificate.method = mixed_cluster_method;
  certificate.complete = search.complete();
  certificate.space_candidates = Count(solved + infeasible + bounded).str();
  certificate.priced_candidates = solved.str();
  certificate.infeasible_candidates = infeasible.str();
  certificate.bounded_candidates = bounded.str();
  // What was not looked at has no bound.
  if (result.best) certificate.gap = search.complete() ? std::max(0.0, 1 - least / result.step_seconds) : 1;
  return result;
}

}  // namespace planner
