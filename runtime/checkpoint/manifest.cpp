#include "runtime/checkpoint/manifest.h"

#include <cmath>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <zlib.h>

#include "runtime/checkpoint/checkpoint_error.h"
#include "runtime/checkpoint/storage_file.h"

namespace runtime {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* format_name = "dsplan checkpoint";

Json to_json(const TrainingState& state) {
  const LossScalerState& scaler = state.loss_scaler;
  return {{"step", state.step},
          {"consumed_samples", state.consumed_samples},
          {"optimizer_updates", state.optimizer_updates},
          {"learning_rate", state.learning_rate},
          {"seed", state.seed},
          {"loss_scaler",
           {{"scale", scaler.scale},
            {"good_steps", scaler.good_steps},
            {"hysteresis_left", scaler.hysteresis_left},
            {"skipped_steps", scaler.skipped_steps}}},
          {"plan_hash", state.plan_hash}};
}

TrainingState state_from(const Json& json) {
  TrainingState state;
  json.at("step").get_to(state.step);
  json.at("consumed_samples").get_to(state.consumed_samples);
  json.at("optimizer_updates").get_to(state.optimizer_updates);
  json.at("learning_rate").get_to(state.learning_rate);
  json.at("seed").get_to(state.seed);
  json.at("plan_hash").get_to(state.plan_hash);
  const Json& scaler = json.at("loss_scaler");
  scaler.at("scale").get_to(state.loss_scaler.scale);
  scaler.at("good_steps").get_to(state.loss_scaler.good_steps);
  scaler.at("hysteresis_left").get_to(state.loss_scaler.hysteresis_left);
  scaler.at("skipped_steps").get_to(state.loss_scaler.skipped_steps);
  return state;
}

Json to_json(const ManifestShard& shard) {
  return {{"file", rank_file_name(shard.rank)},
          {"rank", shard.rank},
          {"box_offset", shard.region.box.offset},
          {"box_extent", shard.region.box.extent},
          {"first_element", shard.region.begin},
          {"end_element", shard.region.end},
          {"first_byte", shard.first_byte},
          {"end_byte", shard.end_byte},
          {"crc32", shard.crc32}};
}

ManifestShard shard_from(const Json& json) {
  ManifestShard shard;
  json.at("rank").get_to(shard.rank);
  json.at("box_offset").get_to(shard.region.box.offset);
  json.at("box_extent").get_to(shard.region.box.extent);
  json.at("first_element").get_to(shard.region.begin);
  json.at("end_element").get_to(shard.region.end);
  json.at("first_byte").get_to(shard.first_byte);
  json.at("end_byte").get_to(shard.end_byte);
  json.at("crc32").get_to(shard.crc32);
  return shard;
}

std::string impossible_state(const TrainingState& state) {
  constexpr std::int64_t most = std::int64_t{1} << 53;
  const auto check = [](std::string_view name, auto value, bool good) {
    return good ? std::string() : fmt::format("has an impossible state: {} {}", name, value);
  };
  const LossScalerState& scaler = state.loss_scaler;
  for (const auto& [name, count] : {std::pair<std::string_view, std::int64_t>{"step", state.step},
                                    {"consumed_samples", state.consumed_samples},
                                    {"optimizer_updates", state.optimizer_updates},
                                    {"loss_scaler.good_steps", scaler.good_steps},
                                    {"loss_scaler.hysteresis_left", scaler.hysteresis_left},
                                    {"loss_scaler.skipped_steps", scaler.skipped_steps}})
    if (std::string what = check(name, count, count >= 0 && count <= most); !what.empty()) return what;
  const double rate = state.learning_rate;
  if (std::string what = check("learning_rate", rate, rate >= 0 && std::isfinite(rate)); !what.empty())
    return what;
  return check("loss_scaler.scale", scaler.scale, scaler.scale > 0 && std::isfinite(scaler.scale));
}

/// CRC-32 of the manifest without its own, as it stands in one line.
std::uint32_t checksum_of(const Json& json) {
  const std::string text = json.dump();
  return static_cast<std::uint32_t>(
      ::crc32(0, reinterpret_cast<const Bytef*>(text.data()), static_cast<uInt>(text.size())));
}

/// The text as JSON whose checksum agrees, where it has one.
Json checked(const std::string& text, const std::string& origin) {
  Json json = Json::parse(text);
  constexpr std::size_t other_keys = 7;
  if (!json.is_object() || (!json.contains("crc32") && json.size() <= other_keys)) return json;
  const auto claimed = json.at("crc32").get<std::uint32_t>();
  json.erase("crc32");
  if (checksum_of(json) != claimed)
    throw CheckpointError(fmt::format("{}: does not have its checksum", origin));
  return json;
}

/// Everything that reading by the manifest relies on; damage is found here rather than by a wild read.
std::string inconsistency(const Manifest& manifest) {
  if (std::string what = impossible_state(manifest.state); !what.empty()) return what;
  for (const auto& [name, tensor] : manifest.tensors)
    for (const ManifestShard& shard : tensor.shards) {
      const ShardBox& box = shard.region.box;
      const std::size_t dims = tensor.global_shape.size();
      bool good = dims > 0 && box.offset.size() == dims && box.extent.size() == dims &&
                  manifest.file_bytes.contains(shard.rank);
      for (std::size_t dim = 0; good && dim < dims; ++dim)
        good = box.offset[dim] >= 0 && box.extent[dim] > 0 &&
               box.extent[dim] <= tensor.global_shape[dim] - box.offset[dim];
      if (!good || shard.region.begin < 0 || shard.region.begin > shard.region.end ||
          shard.region.end > box_size(box) || shard.first_byte < 0 || shard.end_byte < shard.first_byte)
        return fmt::format("has an impossible shard of {}", name);
    }
  return {};
}

}  // namespace

std::string rank_file_name(std::int64_t rank) { return fmt::format("rank_{:05}.safetensors", rank); }

std::string to_json(const Manifest& manifest) {
  Json files = Json::array();
  for (const auto& [rank, bytes] : manifest.file_bytes)
    files.push_back({{"file", rank_file_name(rank)}, {"rank", rank}, {"bytes", bytes}});
  Json tensors = Json::object();
  for (const auto& [name, tensor] : manifest.tensors) {
    Json shards = Json::array();
    for (const ManifestShard& shard : tensor.shards) shards.push_back(to_json(shard));
    tensors[name] = {
        {"global_shape", tensor.global_shape}, {"dtype", tensor.dtype}, {"shards", std::move(shards)}};
  }
  Json json{{"format", format_name},
            {"format_version", checkpoint_format_version},
            {"save_id", manifest.save_id},
            {"state", to_json(manifest.state)},
            {"world_size", manifest.world_size},
            {"files", std::move(files)},
            {"tensors", std::move(tensors)}};
  json["crc32"] = checksum_of(json);
  return json.dump(1) + "\n";
}

Manifest parse_manifest(const std::string& text, const std::string& origin) {
  Manifest manifest;
  try {
    const Json json = checked(text, origin);
    if (json.at("format") != format_name)
      throw CheckpointError(fmt::format("{}: is not the manifest of a checkpoint", origin));
    if (const auto version = json.at("format_version").get<std::int64_t>();
        version != checkpoint_format_version)
      throw CheckpointError(fmt::format("{}: has format version {}; this program reads version {}", origin,
                                        version, checkpoint_format_version));
    json.at("save_id").get_to(manifest.save_id);
    manifest.state = state_from(json.at("state"));
    json.at("world_size").get_to(manifest.world_size);
    for (const Json& file : json.at("files"))
      manifest.file_bytes[file.at("rank").get<std::int64_t>()] = file.at("bytes").get<std::int64_t>();
    for (const auto& [name, entry] : json.at("tensors").items()) {
      ManifestTensor& tensor = manifest.tensors[name];
      entry.at("global_shape").get_to(tensor.global_shape);
      entry.at("dtype").get_to(tensor.dtype);
      for (const Json& shard : entry.at("shards")) tensor.shards.push_back(shard_from(shard));
    }
  } catch (const Json::exception& error) {
    throw CheckpointError(fmt::format("{}: is damaged: {}", origin, error.what()));
  }
  if (const std::string what = inconsistency(manifest); !what.empty())
    throw CheckpointError(fmt::format("{}: {}", origin, what));
  return manifest;
}

Manifest read_manifest(const std::filesystem::path& path) {
  const InputFile file(path);
  std::string text(static_cast<std::size_t>(file.size()), '\0');
  file.read(0, text.data(), text.size());
  return parse_manifest(text, path.native());
}

void add_shards(Manifest& manifest, const Manifest& part) {
  manifest.file_bytes.insert(part.file_bytes.begin(), part.file_bytes.end());
  for (const auto& [name, tensor] : part.tensors) {
    ManifestTensor& whole = manifest.tensors[name];
    whole.global_shape = tensor.global_shape;
    whole.dtype = tensor.dtype;
    whole.shards.insert(whole.shards.end(), tensor.shards.begin(), tensor.shards.end());
  }
}

}  // namespace runtime
