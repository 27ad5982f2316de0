#include "runtime/checkpoint/pretrained_weights.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "runtime/checkpoint/checkpoint_error.h"
#include "runtime/checkpoint/hugging_face_source.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/checkpoint/tensor_region.h"
#include "runtime/comm/agreement.h"

namespace runtime {

namespace {

namespace fs = std::filesystem;

constexpr const char* single_file = "model.safetensors";
constexpr const char* index_file = "model.safetensors.index.json";

std::vector<fs::path> weight_files(const fs::path& path) {
  if (!fs::exists(path)) throw CheckpointError(path.native() + ": is not there");
  if (!fs::is_directory(path)) return {path};
  if (fs::exists(path / single_file)) return {path / single_file};
  const fs::path index = path / index_file;
  if (!fs::exists(index))
    throw CheckpointError(fmt::format("{}: holds neither {} nor {}", path.native(), single_file, index_file));
  const InputFile file(index);
  std::string text(static_cast<std::size_t>(file.size()), '\0');
  file.read(0, text.data(), text.size());
  std::map<fs::path, bool> files;
  try {
    const nlohmann::json document = nlohmann::json::parse(text);
    for (const auto& entry : document.at("weight_map")) files[path / entry.get<std::string>()] = true;
  } catch (const nlohmann::json::exception& error) {
    throw CheckpointError(fmt::format("{}: is no index of weights: {}", index.native(), error.what()));
  }
  std::vector<fs::path> paths;
  for (const auto& [name, there] : files) paths.push_back(name);
  return paths;
}

class WeightFiles {
 public:
  explicit WeightFiles(const fs::path& path) : path_(path) {
    for (const fs::path& file : weight_files(path)) files_.emplace_back(file);
  }

  /// The values that a slice of a parameter holds, flat.
  at::Tensor read(const StateSlice& slice, const HuggingFaceSource& source) const {
    const auto& [file, stored] = find(source);
    const std::optional<at::ScalarType> type = scalar_type_of(stored->dtype);
    if (!type || !at::isFloatingType(*type))
      throw CheckpointError(fmt::format("{}: {} is kept in {}, weights are F64, F32, BF16 or F16", path_,
                                        source.name, stored->dtype));
    return source.transposed ? read_transposed(*file, *stored, *type, slice, source)
                             : read_rows(*file, *stored, *type, slice, source);
  }

 private:
  struct Found {
    const SafetensorsFile* file;
    const StoredTensor* tensor;
  };

  Found find(const HuggingFaceSource& source) const {
    constexpr std::string_view prefix = "transformer.";
    std::vector<std::string> names{source.name};
    if (source.name.starts_with(prefix)) names.push_back(source.name.substr(prefix.size()));
    for (const SafetensorsFile& file : files_)
      for (const std::string& name : names)
        if (const auto found = file.tensors().find(name); found != file.tensors().end()) {
          if (found->second.shape != source.shape)
            throw CheckpointError(fmt::format("{}: {} has shape [{}], the model's is [{}]", path_, name,
                                              fmt::join(found->second.shape, ", "),
                                              fmt::join(source.shape, ", ")));
          return {&file, &found->second};
        }
    throw CheckpointError(fmt::format("{}: has no tensor {}: it is of another model", path_, source.name));
  }

  static at::Tensor read_rows(const SafetensorsFile& file, const StoredTensor& stored, at::ScalarType type,
                              const StateSlice& slice, const HuggingFaceSource& source) {
    // The stored tensor in the parameter's coordinates.
    TensorRegion whole{{std::vector<std::int64_t>(source.shape.size(), 0), source.shape}, 0, 0};
    whole.box.offset[0] = -source.first_row;
    whole.end = box_size(whole.box);
    const TensorRegion wanted{slice.parameter->spec.box, slice.begin, slice.end};
    at::Tensor values = at::empty({wanted.size()}, type);
    const auto element = static_cast<std::int64_t>(values.element_size());
    auto* target = static_cast<char*>(values.mutable_data_ptr());
    for (const SharedRun& run : shared_runs(whole, wanted))
      file.read(stored.begin + run.in_source * element, target + run.in_target * element,
                static_cast<std::size_t>(run.count * element));
    return values;
  }

  static at::Tensor read_transposed(const SafetensorsFile& file, const StoredTensor& stored,
                                    at::ScalarType type, const StateSlice& slice,
                                    const HuggingFaceSource& source) {
    const ShardBox& box = slice.parameter->spec.box;
    const std::int64_t width = box.extent[1];
    const std::int64_t first = slice.begin / width;
    const std::int64_t rows = (slice.end + width - 1) / width - first;
    const at::Tensor columns = at::empty({width, rows}, type);
    const auto element = static_cast<std::int64_t>(columns.element_size());
    auto* target = static_cast<char*>(columns.mutable_data_ptr());
    const std::int64_t first_column = source.first_row + box.offset[0] + first;
    for (std::int64_t i = 0; i < width; ++i)
      file.read(stored.begin + ((box.offset[1] + i) * source.shape[1] + first_column) * element,
                target + i * rows * element, static_cast<std::size_t>(rows * element));
    return columns.t().reshape({-1}).narrow(0, slice.begin - first * width, slice.end - slice.begin);
  }

  std::string path_;
  std::vector<SafetensorsFile> files_;
};

}  // namespace

void load_pretrained_weights(const fs::path& path, Trainer& trainer) {
  const Agreement agreement = agree(trainer.mesh().world(), [&] {
    const WeightFiles files(path);
    for (const StatePart& part : trainer.optimizer().parts())
      for (const StateSlice& slice : part.slices) {
        const ParameterSpec& spec = slice.parameter->spec;
        slice.weight.copy_(
            files.read(slice, hugging_face_source(trainer.spec().model, spec.name, spec.global_shape)));
      }
    return std::string();
  });
  if (!agreement.ok()) throw CheckpointError(agreement.error);
  trainer.optimizer().parameters_from_masters();
}

}  // namespace runtime
