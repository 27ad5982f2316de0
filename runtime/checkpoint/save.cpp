#include "runtime/checkpoint/save.h"

#include <algorithm>
#include <chrono>
#include <random>
#include <string>
#include <unordered_set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/checkpoint/checkpoint_error.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/checkpoint/storage_file.h"
#include "runtime/comm/agreement.h"
#include "runtime/model/counter_random.h"

namespace runtime {

namespace {

namespace fs = std::filesystem;

using Keys = std::vector<std::uint64_t>;

/// The same for the same part of the same tensor on whatever rank.
std::uint64_t key_of(const TensorPiece& piece) {
  const TensorRegion& region = piece.region;
  return random_key(0, fmt::format("{}[{}][{}]{}-{}", piece.name, fmt::join(region.box.offset, ","),
                                   fmt::join(region.box.extent, ","), region.begin, region.end));
}

/// A rank may hold a tensor in several pieces (on the device and on the host), of which the first keeps the
/// name.
std::string name_in_file(const TensorPiece& piece) {
  return piece.region.begin == 0 ? piece.name : fmt::format("{}[{}:]", piece.name, piece.region.begin);
}

std::string new_save_id() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}", device(), device());
}

class Save {
 public:
  Save(const fs::path& checkpoints, const TrainingState& state, const std::vector<TensorPiece>& pieces,
       const Communicator& world)
      : checkpoints_(checkpoints),
        final_(checkpoints / checkpoint_name(state.step)),
        temporary_(final_.native() + ".tmp"),
        state_(state),
        pieces_(pieces),
        world_(world) {}

  SavedCheckpoint run() {
    together([&] { return remove_leftovers(); });
    together([&] { return claim_file(); });
    const std::vector<std::string> announced = together([&] { return announce(); });
    const std::string save_id = announced.front().substr(0, save_id_size);
    const std::vector<std::string> parts = together([&] { return write_tensors(announced); });
    together([&] { return write_manifest(save_id, parts); });
    together([&] { return publish(); });
    return {final_, total_bytes(parts)};
  }

 private:
  static constexpr std::size_t save_id_size = 16;

  std::vector<std::string> together(const std::function<std::string()>& action) {
    Agreement agreement = agree(world_, action);
    if (agreement.ok()) return std::move(agreement.texts);
    discard();
    throw CheckpointError("checkpoint of step " + std::to_string(state_.step) +
                          " was not written: " + agreement.error);
  }

  fs::path own_file() const { return temporary_ / rank_file_name(world_.rank()); }

  /// Of saves that did not come to their end.
  std::string remove_leftovers() {
    fs::create_directories(checkpoints_);
    std::error_code ignored;  // another rank may be removing the same
    for (const fs::directory_entry& entry : fs::directory_iterator(checkpoints_))
      if (entry.path().extension() == ".tmp") fs::remove_all(entry.path(), ignored);
    return {};
  }

  std::string claim_file() {
    fs::create_directories(temporary_);
    OutputFile(own_file()).finish();
    return {};
  }

  /// The save's identity (that of rank 0 counts) and the keys of all pieces. What the folder shows after all
  /// have claimed their files tells which ranks share it.
  std::string announce() {
    for (std::int64_t rank = 0; rank < world_.size(); ++rank)
      if (fs::exists(temporary_ / rank_file_name(rank))) sharing_.push_back(rank);
    std::string text = new_save_id();
    for (const TensorPiece& piece : pieces_) {
      const std::uint64_t key = key_of(piece);
      text.append(reinterpret_cast<const char*>(&key), sizeof key);
    }
    return text;
  }

  bool leads() const { return sharing_.front() == world_.rank(); }

  /// Pieces that no lower rank of this folder holds as well.
  std::vector<const TensorPiece*> own_pieces(const std::vector<std::string>& announced) const {
    std::unordered_set<std::uint64_t> taken;
    for (const std::int64_t rank : sharing_) {
      if (rank >= world_.rank()) break;
      const std::string& text = announced[static_cast<std::size_t>(rank)];
      for (std::size_t at = save_id_size; at < text.size(); at += sizeof(std::uint64_t)) {
        std::uint64_t key = 0;
        text.copy(reinterpret_cast<char*>(&key), sizeof key, at);
        taken.insert(key);
      }
    }
    std::vector<const TensorPiece*> own;
    for (const TensorPiece& piece : pieces_)
      if (!taken.contains(key_of(piece))) own.push_back(&piece);
    return own;
  }

  /// A manifest of this rank's part alone.
  std::string write_tensors(const std::vector<std::string>& announced) {
    const std::vector<const TensorPiece*> own = own_pieces(announced);
    if (own.empty()) {
      fs::remove(own_file());
      return to_json(Manifest{});
    }
    std::vector<NamedTensor> tensors;
    for (const TensorPiece* piece : own) {
      const TensorRegion& region = piece->region;
      const bool whole = region.size() == box_size(region.box);
      tensors.push_back({name_in_file(*piece),
                         whole ? region.box.extent : std::vector<std::int64_t>{region.size()}, piece->data});
    }
    const auto stored = write_safetensors(own_file(), tensors, {{"format", "pt"}});

    Manifest part;
    part.file_bytes[world_.rank()] = static_cast<std::int64_t>(fs::file_size(own_file()));
    for (const TensorPiece* piece : own) {
      const StoredTensor& entry = stored.at(name_in_file(*piece));
      ManifestTensor& tensor = part.tensors[piece->name];
      tensor.global_shape = piece->global_shape;
      tensor.dtype = entry.dtype;
      tensor.shards.push_back({world_.rank(), piece->region, entry.begin, entry.end, entry.crc32});
    }
    return to_json(part);
  }

  std::string write_manifest(const std::string& save_id, const std::vector<std::string>& parts) {
    if (!leads()) return {};
    Manifest manifest;
    manifest.save_id = save_id;
    manifest.state = state_;
    manifest.world_size = world_.size();
    for (const std::int64_t rank : sharing_)
      add_shards(manifest,
                 parse_manifest(parts[static_cast<std::size_t>(rank)], "rank " + std::to_string(rank)));
    write_whole(temporary_ / manifest_name, to_json(manifest));
    sync_folder(temporary_);
    return {};
  }

  std::string publish() {
    if (!leads()) return {};
    // An earlier checkpoint of the same step was passed over as broken, or is written anew.
    const fs::path replaced = final_.native() + ".replaced.tmp";
    if (fs::exists(final_)) fs::rename(final_, replaced);
    fs::rename(temporary_, final_);
    sync_folder(checkpoints_);
    write_whole(checkpoints_ / "latest", final_.filename().native() + "\n");
    sync_folder(checkpoints_);
    fs::remove_all(replaced);
    return {};
  }

  std::int64_t total_bytes(const std::vector<std::string>& parts) const {
    std::int64_t bytes = 0;
    for (const std::string& part : parts)
      for (const auto& [rank, size] : parse_manifest(part, "part").file_bytes) bytes += size;
    return bytes;
  }

  /// Leaves nothing behind, and returns on all ranks once that is so.
  void discard() {
    std::error_code ignored;
    agree(world_, [&] {
      fs::remove(own_file(), ignored);
      return std::string();
    });
    agree(world_, [&] {
      fs::remove_all(temporary_, ignored);
      return std::string();
    });
  }

  fs::path checkpoints_;
  fs::path final_;
  fs::path temporary_;
  const TrainingState& state_;
  const std::vector<TensorPiece>& pieces_;
  const Communicator& world_;
  std::vector<std::int64_t> sharing_;  ///< ranks that see this rank's folder, itself among them
};

}  // namespace

std::string checkpoint_name(std::int64_t step) { return fmt::format("step_{}", step); }

SavedCheckpoint save_checkpoint(const fs::path& checkpoints, const TrainingState& state,
                                const std::vector<TensorPiece>& pieces, const Communicator& world) {
  return Save(checkpoints, state, pieces, world).run();
}

}  // namespace runtime
