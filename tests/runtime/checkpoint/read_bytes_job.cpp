#include "tests/runtime/checkpoint/read_bytes_job.h"

#include <fstream>
#include <numeric>
#include <stdexcept>
#include <string>

#include <ATen/ops/full.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/checkpoint/load.h"
#include "runtime/checkpoint/save.h"

namespace runtime {
namespace {

using nlohmann::json;

/// A number of the process from a file of /proc/self: "rchar" of io, "VmHWM" of status (in kB).
std::int64_t own_number(const std::string& file, const std::string& name) {
  std::ifstream stream("/proc/self/" + file);
  for (std::string line; std::getline(stream, line);)
    if (line.starts_with(name + ":")) return std::stoll(line.substr(name.size() + 1));
  throw std::runtime_error("/proc/self/" + file + " has no " + name);
}

std::int64_t resident_bytes() { return 1024 * own_number("status", "VmRSS"); }
std::int64_t largest_resident_bytes() { return 1024 * own_number("status", "VmHWM"); }
void forget_largest_resident_bytes() { std::ofstream("/proc/self/clear_refs") << "5"; }

std::string save_and_load_share(WorkerContext& context, const std::string& text) {
  const json request = json::parse(text);
  const auto elements = request.at("elements").get<std::int64_t>();
  const auto ranks = request.at("ranks").get<std::int64_t>();
  const std::int64_t share = elements / ranks;
  const std::filesystem::path checkpoints = request.at("checkpoints").get<std::string>();
  const TensorRegion region{{{0}, {elements}}, context.rank * share, (context.rank + 1) * share};
  const auto piece = [&](at::Tensor data) {
    return std::vector<TensorPiece>{{"optimizer.moment", {elements}, region, std::move(data)}};
  };
  TrainingState state;
  state.step = 1;
  std::vector<std::int64_t> all(static_cast<std::size_t>(ranks));
  std::iota(all.begin(), all.end(), 0);
  const Communicator world = context.groups.communicator("world", all);
  save_checkpoint(checkpoints, state, piece(at::full({share}, static_cast<double>(context.rank))), world);
  const std::vector<TensorPiece> loaded = piece(at::full({share}, -1.0));
  const std::int64_t read_before = own_number("io", "rchar");
  forget_largest_resident_bytes();
  const std::int64_t held_before = resident_bytes();
  if (!load_newest_checkpoint(checkpoints, loaded, world)) throw std::runtime_error("nothing was loaded");
  const std::int64_t read = own_number("io", "rchar") - read_before;
  const std::int64_t held = largest_resident_bytes() - held_before;
  if (loaded[0].data[share - 1].item<double>() != static_cast<double>(context.rank))
    throw std::runtime_error("another rank's share was loaded");
  return json{{"read", read}, {"held", held}, {"own", share * 4}}.dump();
}

}  // namespace

WorkerJobs read_bytes_jobs() { return {{"read bytes", save_and_load_share}}; }

std::vector<LoadCost> save_and_load(WorkerPool& pool, const std::filesystem::path& checkpoints,
                                    std::int64_t ranks, std::int64_t elements) {
  const json request{{"checkpoints", checkpoints.native()}, {"ranks", ranks}, {"elements", elements}};
  std::vector<LoadCost> costs;
  for (const WorkerResult& result : pool.run("read bytes", request.dump(), ranks)) {
    if (!result.ok()) throw std::runtime_error(result.error);
    const json cost = json::parse(result.value);
    costs.push_back({cost.at("read"), cost.at("held"), cost.at("own")});
  }
  return costs;
}

}  // namespace runtime
