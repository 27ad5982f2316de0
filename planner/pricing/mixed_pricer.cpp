#include "planner/pricing/mixed_pricer.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cost_models/rank_price.h"
#include "planner/pricing/group_bounds.h"

namespace planner {
namespace {

using cost_models::StagePricer;
using cost_models::UnitCounts;
using specs::RegularPlacement;

constexpr double never = std::numeric_limits<double>::infinity();
constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();

bool recomputes_nowhere(const Partition& partition) {
  return std::all_of(partition.parts.begin(), partition.parts.end(),
                     [](const StagePart& part) { return part.recomputed_layers == 0; });
}

bool contains_none(const std::vector<specs::Recomputation>& modes) {
  return std::find(modes.begin(), modes.end(), specs::Recomputation::none) != modes.end();
}

/// Stages on unlike devices are recomputed each as much as it needs.
specs::StackSpec with_own_numbers(specs::StackSpec stack) {
  stack.recomputed_layers = specs::RecomputedLayerNumbers::each;
  return stack;
}

/// All units of the model, kind by kind; the embedding first.
std::vector<UnitCounts> units_by_kind(const specs::ModelSpec& model) {
  const specs::UnitRange all{0, specs::unit_count(specs::block_count(model))};
  const UnitCounts whole = cost_models::unit_counts(model, all, specs::Recomputation::none, 0);
  std::vector<UnitCounts> kinds(6);
  kinds[0].embedding = whole.embedding;
  kinds[1].encoder_attention = whole.encoder_attention;
  kinds[2].attention = whole.attention;
  kinds[3].feed_forward = whole.feed_forward;
  kinds[4].mixture = whole.mixture;
  kinds[5].output = whole.output;
  kinds[5].prediction = whole.prediction;
  return kinds;
}

UnitCounts whole_of(const std::vector<UnitCounts>& kinds) {
  UnitCounts whole;
  for (const UnitCounts& kind : kinds) whole += kind;
  return whole;
}

}  // namespace

/// An order of the groups along the pipeline.
struct MixedPricer::StageLayout {
  std::vector<std::size_t> group_of_stage;
  StageChain chain;
};

struct MixedPricer::Point {
  Point(const MixedPricer& pricer, const RegularPlacement& point)
      : outer(point),
        allowed(pricer.experiment_.search, outer),
        shares(pricer.estimator_, pricer.layouts_, outer) {
    for (std::size_t group = 0; group < pricer.layouts_.groups(); ++group)
      pricers.push_back(pricer.estimator_.stage_pricer(outer, static_cast<std::int64_t>(group)));
  }
  Point(const Point&) = delete;
  Point& operator=(const Point&) = delete;

  const RegularPlacement outer;
  const RecomputedLayers allowed;
  std::vector<StagePricer> pricers;  ///< by group
  ShareLayout shares;
  std::optional<std::vector<std::unique_ptr<StageLayout>>> stage_layouts;  ///< that fit
  std::optional<Solution> solution;
  bool unsolvable = false;
};

MixedPricer::MixedPricer(const specs::Experiment& experiment, const specs::StackSpec& stack,
                         const cost_models::Estimator& estimator)
    : experiment_(experiment),
      estimator_(estimator),
      layouts_(experiment),
      inner_(experiment, with_own_numbers(stack), estimator),
      blocks_(specs::block_count(experiment.model)),
      plain_points_(contains_none(stack.recomputations) && (experiment.search.recomputation.empty() ||
                                                            contains_none(experiment.search.recomputation))),
      kinds_(units_by_kind(experiment.model)) {
  for (std::size_t group = 0; group < layouts_.groups(); ++group) {
    limits_.device_bytes.push_back(estimator.usable_device_bytes(static_cast<std::int64_t>(group)));
    limits_.host_bytes_per_node.push_back(estimator.usable_host_bytes(static_cast<std::int64_t>(group)));
  }
}

MixedPricer::~MixedPricer() = default;

std::int64_t MixedPricer::usable_device_bytes() const {
  return *std::max_element(limits_.device_bytes.begin(), limits_.device_bytes.end());
}
std::int64_t MixedPricer::usable_host_bytes() const {
  return *std::max_element(limits_.host_bytes_per_node.begin(), limits_.host_bytes_per_node.end());
}

double MixedPricer::objective(double step_seconds, std::int64_t world_size) const {
  if (std::isinf(step_seconds)) return step_seconds;
  return objective_of_step(experiment_.search.objective, estimator_, step_seconds, world_size);
}

bool MixedPricer::stages_lie_in_groups(const RegularPlacement& outer) const {
  return inner_.cuts_are_free(outer) &&
         layouts_.ranks_lie_in_groups(outer.tensor * outer.context * outer.data);
}

Count MixedPricer::members(const RegularPlacement& outer) const {
  Count count = ShareLayout(estimator_, layouts_, outer).count();
  if (stages_lie_in_groups(outer)) count += inner_.count(outer) * layouts_.orders().size();
  return count;
}

MixedPricer::Point& MixedPricer::point(const RegularPlacement& outer) const {
  if (!last_ || !(last_->outer == outer)) last_ = std::make_unique<Point>(*this, outer);
  return *last_;
}

std::unique_ptr<MixedPricer::StageLayout> MixedPricer::stage_layout(const Point& point,
                                                                    const std::vector<std::size_t>& order,
                                                                    const GroupLimits& limits) const {
  const RegularPlacement& outer = point.outer;
  std::vector<std::size_t> groups = layouts_.group_of_rank(order, outer.tensor * outer.context * outer.data);
  std::vector<StageDevices> devices;
  for (const std::size_t group : groups)
    devices.push_back({&point.pricers[group], limits.device_bytes[group], limits.host_bytes_per_node[group]});
  return std::make_unique<StageLayout>(
      StageLayout{std::move(groups), StageChain(devices, outer, blocks_, inner_.pieces(), point.allowed)});
}

bool MixedPricer::any_fits(Point& point, const GroupLimits& limits) const {
  if (point.shares.any_fits(limits)) return true;
  if (!stages_lie_in_groups(point.outer)) return false;
  return std::any_of(layouts_.orders().begin(), layouts_.orders().end(), [&](const auto& order) {
    return any_partition_fits(stage_layout(point, order, limits)->chain);
  });
}

bool MixedPricer::any_fits(Point& of) const {
  if (!of.stage_layouts) {
    of.stage_layouts.emplace();
    if (stages_lie_in_groups(of.outer))
      for (const std::vector<std::size_t>& order : layouts_.orders()) {
        std::unique_ptr<StageLayout> layout = stage_layout(of, order, limits_);
        if (any_partition_fits(layout->chain)) of.stage_layouts->push_back(std::move(layout));
      }
  }
  return !of.stage_layouts->empty() || of.shares.any_fits(limits_);
}

// Some layouts may lack the one memory and some the other: then each for itself is enough.
Price MixedPricer::least_memory(const RegularPlacement& outer) const {
  Point& of = point(outer);
  if (any_fits(of)) return {};
  if (!of.shares.exists() && !stages_lie_in_groups(outer)) return {0, 0, unlimited, unlimited};
  const std::vector<std::int64_t> any(layouts_.groups(), unlimited);
  if (!any_fits(of, {limits_.device_bytes, any})) return {0, 0, usable_device_bytes() + 1, 0};
  if (!any_fits(of, {any, limits_.host_bytes_per_node})) return {0, 0, 0, usable_host_bytes() + 1};
  return {};
}

Price MixedPricer::memory_of_nearest(const RegularPlacement& outer) const {
  const Point& of = point(outer);
  if (!of.shares.exists() && !stages_lie_in_groups(outer)) return {0, 0, unlimited, unlimited};
  return price_of(least_excess(of));
}

double MixedPricer::stage_bound(const Point& point) const {
  const RegularPlacement& outer = point.outer;
  RegularPlacement without_shards = outer;
  without_shards.zero = {};
  std::vector<GroupWork> works;
  const UnitCounts whole = whole_of(kinds_);
  double reduction = never, update = never, fixed = never;
  MixedPipeline pipeline{outer.schedule, static_cast<double>(outer.accumulation), 0, 1, {}};
  std::pair<double, double> slowest{-1, 0};  // what prices the transfers
  for (std::size_t group = 0; group < layouts_.groups(); ++group) {
    const StagePricer pricer = estimator_.stage_pricer(without_shards, static_cast<std::int64_t>(group));
    GroupWork& work = works.emplace_back();
    work.embedding = pricer.stage(kinds_[0]).total();
    for (std::size_t kind = 1; kind < kinds_.size(); ++kind) {
      const cost_models::StageSeconds seconds = pricer.stage(kinds_[kind]);
      work.of_kind.push_back(seconds.total());
      if (seconds.total() > 0)
        pipeline.backward_share = std::min(pipeline.backward_share, seconds.backward / seconds.total());
    }
    const cost_models::StepEndSeconds end = point.pricers[group].end(whole);
    reduction = std::min(reduction, end.gradient_reduction / static_cast<double>(outer.pipeline));
    update = std::min(update, end.update() / static_cast<double>(outer.pipeline));
    fixed = std::min(fixed, point.pricers[group].fixed());
    if (const std::pair way(point.pricers[group].way(), point.pricers[group].fixed()); way > slowest) {
      slowest = way;
      pipeline.transfer_seconds = point.pricers[group].transfers().least();
    }
  }
  double least = never;
  for (const std::vector<std::size_t>& order : layouts_.orders()) {
    const std::vector<std::size_t> groups =
        layouts_.group_of_rank(order, outer.tensor * outer.context * outer.data);
    pipeline.group_of_rank = groups;
    const MixedPipelineBound bound = mixed_pipeline_bound(pipeline, works);
    least = std::min(least, std::max(bound.seconds, bound.shared_seconds + bound.least_weight * reduction));
  }
  return least + update + fixed;
}

bool MixedPricer::slower_in_larger_shares(specs::OffloadDevice optimizer) const {
  return planner::slower_in_larger_shares(experiment_, estimator_, optimizer);
}

double MixedPricer::step_bound(const RegularPlacement& outer) const {
  Point& of = point(outer);
  double least = never;
  if (of.shares.exists()) least = of.shares.bound();
  if (stages_lie_in_groups(outer)) least = std::min(least, stage_bound(of));
  return least;
}

/// Whether an inner choice that fits may be as good as this objective.
bool MixedPricer::may_reach(Point& of, double objective) const {
  if (!any_fits(of)) return true;  // for its price to say what it lacks
  if (std::isinf(objective)) return true;
  const double seconds =
      longest_step(experiment_.search.objective, estimator_, objective, of.outer.world_size());
  if (of.shares.any_fits(limits_) && of.shares.bound() <= seconds) return true;
  return std::any_of(of.stage_layouts->begin(), of.stage_layouts->end(),
                     [&](const auto& layout) { return any_partition_within(layout->chain, seconds); });
}

std::optional<Partition> MixedPricer::with_one_layer_recomputed(const StageLayout& layout,
                                                                const Partition& without) const {
  std::optional<Partition> best;
  for (std::size_t stage = 0; stage < without.parts.size(); ++stage) {
    Partition tried = without;
    tried.parts[stage].recomputed_layers = 1;
    const StagePricer::Bytes bytes =
        layout.chain.memory(static_cast<std::int64_t>(stage), tried.parts[stage]);
    const std::size_t group = layout.group_of_stage[stage];
    if (bytes.device > limits_.device_bytes[group] ||
        bytes.host_per_node > limits_.host_bytes_per_node[group])
      continue;
    tried.price = layout.chain.price(tried.parts);
    if (!best || tried.price < best->price) best = tried;
  }
  return best;
}

Partition MixedPricer::solved(const Point& point, StageLayout& layout, double enough) const {
  Partition nothing;
  nothing.price = nothing.lower_bound = never;
  const std::optional<Partition> found =
      best_partition(layout.chain, layout.chain.worthwhile_prices(Effort::whole), enough);
  if (!found) return nothing;
  const Partition& best = *found;
  if (point.outer.recomputation == specs::Recomputation::none || !recomputes_nowhere(best)) return best;
  // Its cheapest choice is one of the point without recomputation.
  if (plain_points_)
    if (std::optional<Partition> somewhere = with_one_layer_recomputed(layout, best)) {
      somewhere->lower_bound = best.lower_bound;
      return *somewhere;
    }
  const std::optional<Partition> forced = best_cut(layout.chain, true);
  return forced ? *forced : nothing;
}

specs::Placement MixedPricer::placed(const Point& point, const StageLayout& layout,
                                     const Partition& partition) const {
  specs::Placement placement = specs::regular_placement(point.outer, blocks_);
  for (std::size_t index = 0; index < partition.parts.size(); ++index) {
    specs::PipelineStage& stage = placement.stages[index];
    stage.units = {partition.parts[index].first, partition.parts[index].end};
    stage.device_group = static_cast<std::int64_t>(layout.group_of_stage[index]);
    set_recomputation(point.outer, blocks_, partition.parts[index].recomputed_layers, stage);
  }
  return placement;
}

std::optional<MixedPricer::Solution> MixedPricer::solve(Point& of) const {
  if (!any_fits(of)) return std::nullopt;
  std::optional<Solution> best;
  double least = never;
  if (const auto shares = of.shares.best(limits_)) {
    best = Solution{of.shares.placement(shares->index), shares->step_seconds, 0};
    least = shares->step_seconds;
  }
  for (const std::unique_ptr<StageLayout>& layout : *of.stage_layouts) {
    if (best && !any_partition_within(layout->chain, best->step_seconds)) continue;
    const Partition partition = solved(of, *layout, best ? best->step_seconds : any_price);
    least = std::min(least, partition.lower_bound);
    if (best && partition.price >= best->step_seconds) continue;
    if (std::isinf(partition.price)) continue;
    best = Solution{placed(of, *layout, partition), partition.price, 0};
  }
  if (best) best->least_step_seconds = std::min(least, best->step_seconds);
  return best;
}

MixedPricer::Solution MixedPricer::least_excess(const Point& of) const {
  std::vector<specs::Placement> tried;
  const specs::Placement even = specs::regular_placement(of.outer, blocks_);
  if (of.shares.exists()) tried.push_back(of.shares.placement(0));
  if (stages_lie_in_groups(of.outer))
    for (const std::vector<std::size_t>& order : layouts_.orders()) {
      tried.push_back(even);
      const auto groups = layouts_.group_of_rank(order, of.outer.tensor * of.outer.context * of.outer.data);
      for (std::size_t stage = 0; stage < groups.size(); ++stage)
        tried.back().stages[stage].device_group = static_cast<std::int64_t>(groups[stage]);
    }
  Solution nearest;
  std::int64_t least = unlimited;
  for (specs::Placement& placement : tried) {
    const std::int64_t bytes = price_of({placement, 0, 0}).peak_device_bytes;
    if (bytes >= least) continue;
    least = bytes;
    nearest.placement = std::move(placement);
  }
  return nearest;
}

Price MixedPricer::price_of(const Solution& solution) const {
  Price price;
  price.step_seconds = solution.step_seconds;
  price.objective = objective(solution.step_seconds, solution.placement.world_size());
  std::int64_t device = -unlimited, host = -unlimited;
  for (const cost_models::RankBytes& rank : estimator_.rank_bytes(solution.placement)) {
    const auto group = static_cast<std::size_t>(rank.device_group);
    device = std::max(device, rank.device - limits_.device_bytes[group]);
    host = std::max(host, rank.host_per_node - limits_.host_bytes_per_node[group]);
  }
  price.peak_device_bytes = usable_device_bytes() + device;
  price.peak_host_bytes_per_node = usable_host_bytes() + host;
  return price;
}

Price MixedPricer::price(const RegularPlacement& outer) const {
  Point& of = point(outer);
  if (!of.solution && !of.unsolvable) of.solution = solve(of);
  if (of.solution) return price_of(*of.solution);
  of.unsolvable = true;
  if (!of.shares.exists() && !stages_lie_in_groups(outer)) return {never, never, unlimited, unlimited};
  Solution nearest = least_excess(of);
  nearest.step_seconds = nearest.least_step_seconds = estimator_.estimate(nearest.placement).step_seconds;
  Price price = price_of(nearest);
  // The even cut may fit where no choice of the space does: those recompute a layer or more.
  if (fits_device(price) && fits_host(price)) price.peak_device_bytes = usable_device_bytes() + 1;
  return price;
}

Price MixedPricer::price_of_choice(const RegularPlacement&, const specs::Placement& choice) const {
  Solution solution;
  solution.placement = choice;
  solution.step_seconds = solution.least_step_seconds = estimator_.estimate(choice).step_seconds;
  return price_of(solution);
}

Solved MixedPricer::solve(const RegularPlacement& outer, double enough, Effort) const {
  Point& of = point(outer);
  if (!may_reach(of, enough)) return {std::nullopt, enough, false};
  const Price found = price(outer);
  const double least = of.solution ? of.solution->least_step_seconds : found.step_seconds;
  return {found, objective(least, outer.world_size()), false};
}

specs::Placement MixedPricer::placement(const RegularPlacement& outer) const {
  Point& of = point(outer);
  if (!of.solution && !of.unsolvable) of.solution = solve(of);
  return of.solution ? of.solution->placement : least_excess(of).placement;
}

}  // namespace planner
