// manifest.json: what a checkpoint holds, and where.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "runtime/checkpoint/tensor_region.h"
#include "runtime/checkpoint/training_state.h"

namespace runtime {

inline constexpr std::int64_t checkpoint_format_version = 1;
inline constexpr const char* manifest_name = "manifest.json";

/// A piece of a tensor in a file.
struct ManifestShard {
  std::int64_t rank = 0;  ///< that wrote it
  TensorRegion region;
  std::int64_t first_byte = 0;  ///< from the start of the file
  std::int64_t end_byte = 0;
  std::uint32_t crc32 = 0;
};

struct ManifestTensor {
  std::vector<std::int64_t> global_shape;
  std::string dtype;  ///< as safetensors names it
  std::vector<ManifestShard> shards;
};

struct Manifest {
  std::string save_id;  ///< the same in all folders of one save, different in the next
  TrainingState state;
  std::int64_t world_size = 0;
  std::map<std::int64_t, std::int64_t> file_bytes;  ///< by the rank that wrote the file
  std::map<std::string, ManifestTensor> tensors;
};

/// "rank_00003.safetensors".
std::string rank_file_name(std::int64_t rank);

std::string to_json(const Manifest& manifest);
/// Errors: CheckpointError with the path.
Manifest read_manifest(const std::filesystem::path& path);
/// `origin` names the text in errors.
Manifest parse_manifest(const std::string& text, const std::string& origin);

/// Adds the files and shards of `part`, of the same save.
void add_shards(Manifest& manifest, const Manifest& part);

}  // namespace runtime
