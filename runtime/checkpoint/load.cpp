#include "runtime/checkpoint/load.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/checkpoint/checkpoint_error.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/checkpoint/save.h"
#include "runtime/checkpoint/storage_file.h"
#include "runtime/comm/agreement.h"

namespace runtime {

namespace {

namespace fs = std::filesystem;

/// N of a folder named step_N.
std::optional<std::int64_t> step_of(const std::string& name) {
  std::int64_t step = -1;
  const std::string_view prefix = "step_";
  if (!name.starts_with(prefix)) return std::nullopt;
  const auto [end, error] = std::from_chars(name.data() + prefix.size(), name.data() + name.size(), step);
  if (error != std::errc() || end != name.data() + name.size() || step < 0) return std::nullopt;
  return step;
}

/// Steps that any rank has a checkpoint of, newest first.
std::vector<std::int64_t> steps_anywhere(const fs::path& checkpoints, const Communicator& world) {
  const Agreement agreement = agree(world, [&] {
    std::string steps;
    if (!fs::is_directory(checkpoints)) return steps;
    for (const fs::directory_entry& entry : fs::directory_iterator(checkpoints))
      if (const auto step = step_of(entry.path().filename().native()); step && entry.is_directory())
        steps += std::to_string(*step) + " ";
    return steps;
  });
  if (!agreement.ok()) throw CheckpointError(agreement.error);
  std::set<std::int64_t, std::greater<>> steps;
  for (const std::string& text : agreement.texts)
    for (std::size_t at = 0, space = 0; (space = text.find(' ', at)) != std::string::npos; at = space + 1)
      steps.insert(std::stoll(text.substr(at, space - at)));
  return {steps.begin(), steps.end()};
}

/// The same for two ranks that see the same folder through the same host.
std::string identity_of(const fs::path& folder) {
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  struct stat status {};
  ::stat(folder.c_str(), &status);
  return fmt::format("{}:{}:{}", host, status.st_dev, status.st_ino);
}

class Load {
 public:
  Load(fs::path folder, const std::vector<TensorPiece>& pieces, const Communicator& world)
      : folder_(std::move(folder)), pieces_(pieces), world_(world) {}

  /// Why this checkpoint cannot be taken; empty once `pieces` are filled.
  /// Errors: CheckpointMismatch where it is whole and of something else.
  std::string run() {
    const Agreement opened = agree(world_, [&] { return open(); });
    if (!opened.ok()) return opened.error;
    for (std::size_t rank = 1; rank < opened.texts.size(); ++rank)
      if (save_id(opened.texts[rank]) != save_id(opened.texts[0]))
        return fmt::format("rank {} has a folder of another save than rank 0", world_.ranks()[rank]);
    for (const std::string& difference : agree(world_, [&] { return mismatch(); }).texts)
      if (!difference.empty()) throw CheckpointMismatch(difference);
    const Agreement verified = agree(world_, [&] { return verify(opened.texts); });
    if (!verified.ok()) return verified.error;
    return agree(world_, [&] { return read(); }).error;
  }

  const TrainingState& state() const { return manifest_.state; }

 private:
  static std::string save_id(const std::string& text) { return text.substr(0, text.find('\n')); }

  /// Manifest and sizes.
  std::string open() {
    if (!fs::is_directory(folder_)) throw CheckpointError(folder_.native() + ": is not there");
    manifest_ = read_manifest(folder_ / manifest_name);
    for (const auto& [rank, bytes] : manifest_.file_bytes) {
      const InputFile& file = files_.try_emplace(rank, folder_ / rank_file_name(rank)).first->second;
      if (file.size() != bytes)
        throw CheckpointError(fmt::format("{}: is {} bytes long, but {} were written",
                                          (folder_ / rank_file_name(rank)).native(), file.size(), bytes));
    }
    return manifest_.save_id + "\n" + identity_of(folder_);
  }

  /// Checksums of this rank's share of what lies in its folder, and that nothing it needs is missing.
  std::string verify(const std::vector<std::string>& opened) {
    std::int64_t members = 0, place = 0;
    for (std::size_t rank = 0; rank < opened.size(); ++rank) {
      if (opened[rank] != opened[static_cast<std::size_t>(world_.rank())]) continue;
      if (static_cast<std::int64_t>(rank) == world_.rank()) place = members;
      ++members;
    }
    std::int64_t number = 0;
    for (const auto& [name, tensor] : manifest_.tensors)
      for (const ManifestShard& shard : tensor.shards)
        if (number++ % members == place) verify(name, tensor, shard);
    for (const TensorPiece& piece : pieces_) plan(piece);
    return {};
  }

  void verify(const std::string& name, const ManifestTensor& tensor, const ManifestShard& shard) const {
    const std::string path = (folder_ / rank_file_name(shard.rank)).native();
    const InputFile& file = files_.at(shard.rank);
    if (shard.end_byte > file.size() ||
        shard.end_byte - shard.first_byte != shard.region.size() * dtype_bytes(tensor.dtype))
      throw CheckpointError(fmt::format("{}: {} is not where the manifest says", path, name));
    if (crc32_of(file, shard.first_byte, shard.end_byte) != shard.crc32)
      throw CheckpointError(fmt::format("{}: the bytes of {} do not have their checksum", path, name));
  }

  /// What this checkpoint holds differently from what is asked of it; empty where nothing is.
  std::string mismatch() const {
    // Where each host has a folder of its own, a tensor that is not in it may be in another's.
    const bool whole = static_cast<std::int64_t>(manifest_.file_bytes.size()) == manifest_.world_size;
    for (const TensorPiece& piece : pieces_) {
      const auto found = manifest_.tensors.find(piece.name);
      if (found == manifest_.tensors.end() && !whole) continue;
      if (found == manifest_.tensors.end())
        return fmt::format("{}: is of another model or optimizer: it has no tensor {}", folder_.native(),
                           piece.name);
      const ManifestTensor& tensor = found->second;
      if (tensor.global_shape != piece.global_shape)
        return fmt::format("{}: is of another model: {} has shape [{}], here it is [{}]", folder_.native(),
                           piece.name, fmt::join(tensor.global_shape, ", "),
                           fmt::join(piece.global_shape, ", "));
      if (const std::string dtype = dtype_name(piece.data.scalar_type()); tensor.dtype != dtype)
        return fmt::format("{}: {} is kept in {}, this run keeps it in {}", folder_.native(), piece.name,
                           tensor.dtype, dtype);
    }
    return {};
  }

  void plan(const TensorPiece& piece) {
    std::vector<TensorRegion> sources;
    if (const auto found = manifest_.tensors.find(piece.name); found != manifest_.tensors.end())
      for (const ManifestShard& shard : found->second.shards) sources.push_back(shard.region);
    coverage_.push_back(cover(piece.region, sources));
    if (coverage_.back().missing > 0)
      throw CheckpointError(fmt::format(
          "{}: lacks {} of the {} elements of {} that this rank needs (written by {} ranks; where each host "
          "has a folder of its own, only the placement that wrote it can read it)",
          folder_.native(), coverage_.back().missing, piece.region.size(), piece.name, manifest_.world_size));
  }

  std::string read() {
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      const TensorPiece& piece = pieces_[i];
      const ManifestTensor& tensor = manifest_.tensors.at(piece.name);
      const std::int64_t element = dtype_bytes(tensor.dtype);
      const at::Tensor host = piece.data.cpu();
      auto* target = static_cast<char*>(host.mutable_data_ptr());
      for (const auto& [source, run] : coverage_[i].runs) {
        const ManifestShard& shard = tensor.shards[source];
        files_.at(shard.rank)
            .read(shard.first_byte + run.in_source * element, target + run.in_target * element,
                  static_cast<std::size_t>(run.count * element));
      }
      if (!host.is_same(piece.data)) piece.data.copy_(host);
    }
    return {};
  }

  fs::path folder_;
  const std::vector<TensorPiece>& pieces_;
  const Communicator& world_;
  Manifest manifest_;
  std::map<std::int64_t, InputFile> files_;  ///< by the rank that wrote it
  std::vector<Coverage> coverage_;           ///< by piece
};

}  // namespace

std::optional<LoadedCheckpoint> load_newest_checkpoint(const fs::path& checkpoints,
                                                       const std::vector<TensorPiece>& pieces,
                                                       const Communicator& world) {
  const std::vector<std::int64_t> steps = steps_anywhere(checkpoints, world);
  if (steps.empty()) return std::nullopt;
  LoadedCheckpoint loaded;
  for (const std::int64_t step : steps) {
    loaded.folder = checkpoints / checkpoint_name(step);
    Load load(loaded.folder, pieces, world);
    const std::string error = load.run();
    if (error.empty()) {
      loaded.state = load.state();
      return loaded;
    }
    loaded.passed_over.push_back(fmt::format("{}: {}", checkpoint_name(step), error));
  }
  throw CheckpointError(fmt::format("no checkpoint can be read:\n{}", fmt::join(loaded.passed_over, "\n")));
}

}  // namespace runtime
