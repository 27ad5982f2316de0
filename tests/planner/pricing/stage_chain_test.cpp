// Bounds of cuts of long pipelines, which no brute force reaches, against their prices.
#include "planner/pricing/stage_chain.h"

#include <algorithm>
#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "cost_models/estimate.h"
#include "planner/pricing/partition_layers.h"
#include "tests/cost_models/model_fixtures.h"

namespace planner {
namespace {

struct Pipeline {
  specs::Experiment experiment;
  specs::RegularPlacement outer;
  bool cuts_inside_layers = false;
};

Pipeline random_pipeline(std::mt19937& random) {
  Pipeline pipeline;
  specs::RegularPlacement& outer = pipeline.outer;
  outer.pipeline = 3 + random() % 14;
  outer.accumulation = 1 + random() % static_cast<std::uint32_t>(12 * outer.pipeline);
  outer.schedule = specs::ScheduleKind::one_forward_one_backward;
  if (random() % 2 == 0) outer.recomputation = specs::Recomputation::full;
  const std::int64_t layers = outer.pipeline + random() % static_cast<std::uint32_t>(2 * outer.pipeline);
  const std::int64_t vocabulary = random() % 2 == 0 ? 4000 : 64000;
  pipeline.experiment = cost_models::testing::experiment(
      cost_models::testing::llama(layers, 1024, 16, 16, 2816, vocabulary), 8, outer.accumulation, 2048);
  pipeline.experiment.cluster.network.node_bytes_per_second =
      2e11 / std::pow(10.0, std::uniform_real_distribution<double>(0, 3.5)(random));
  pipeline.cuts_inside_layers = random() % 2 == 0;
  return pipeline;
}

/// How many places each stage takes: about as many each, in any order or sorted.
std::vector<std::size_t> random_lengths(std::size_t places, std::size_t stages, std::mt19937& random) {
  std::vector<std::size_t> lengths(stages, places / stages);
  for (std::size_t rest = places % stages; rest > 0; --rest) ++lengths[random() % stages];
  for (std::size_t moves = random() % 4; moves > 0; --moves) {
    std::size_t& from = lengths[random() % stages];
    if (from == 1) continue;
    --from;
    ++lengths[random() % stages];
  }
  if (random() % 3 == 0) std::sort(lengths.begin(), lengths.end());
  if (random() % 3 == 0) std::reverse(lengths.begin(), lengths.end());
  return lengths;
}

std::vector<StagePart> parts_of(const StageChain& chain, const std::vector<std::size_t>& lengths) {
  std::vector<StagePart> parts;
  std::size_t first = 0;
  for (const std::size_t length : lengths) {
    const std::size_t end = first + length;
    parts.push_back(
        *chain.fitted(static_cast<std::int64_t>(parts.size()), chain.places()[first], chain.places()[end]));
    first = end;
  }
  return parts;
}

bool stays_within(const PartitionLayers& layers, const std::vector<StagePart>& parts, double seconds) {
  PartitionLayers::Seen seen;
  for (std::size_t stage = 0; stage < parts.size(); ++stage) {
    bool too_long = false;
    const auto next = layers.followed(seen, stage, parts[stage], seconds, too_long);
    if (!next) return false;
    seen = *next;
  }
  return true;
}

TEST(StageChain, NoBoundOfACutIsAboveItsPriceAndManyAreAsHigh) {
  std::mt19937 random(77);
  int cuts = 0, as_high = 0;
  for (int round = 0; round < 400; ++round) {
    const Pipeline pipeline = random_pipeline(random);
    const cost_models::Estimator estimator(pipeline.experiment);
    const ChainPieces pieces(pipeline.experiment.model, pipeline.cuts_inside_layers);
    const cost_models::StagePricer pricer = estimator.stage_pricer(pipeline.outer);
    const RecomputedLayers allowed = pipeline.outer.recomputation == specs::Recomputation::none
                                         ? RecomputedLayers(pipeline.experiment.search, pipeline.outer)
                                         : RecomputedLayers::of_every_stage(1 + random() % 3);
    const auto devices =
        same_devices(pricer, pipeline.outer, StageDevices::unlimited, StageDevices::unlimited);
    const StageChain chain(devices, pipeline.outer, pipeline.experiment.model.layers, pieces, allowed);
    const PartitionThresholds thresholds(chain);
    const PartitionLayers layers(chain, thresholds);
    for (int draw = 0; draw < 60; ++draw, ++cuts) {
      const auto parts = parts_of(chain, random_lengths(pieces.places().size() - 1,
                                                        static_cast<std::size_t>(chain.stages()), random));
      const double price = chain.price(parts);
      ASSERT_TRUE(stays_within(layers, parts, price * (1 + 1e-11)))
          << "pipeline " << pipeline.outer.pipeline << ", " << pipeline.outer.accumulation
          << " micro-batches, " << pipeline.experiment.model.layers << " layers";
      as_high += !stays_within(layers, parts, price * (1 - 1e-9));
    }
  }
  EXPECT_GT(as_high, cuts / 6);
}

}  // namespace
}  // namespace planner
