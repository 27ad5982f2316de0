// Files of tensors in the safetensors format: u64 length of the header, little endian | header, JSON padded
// with spaces to 8 bytes: {"name": {"dtype", "shape", "data_offsets": [begin, end]}, "__metadata__": {…}} |
// the tensors' bytes, to which the offsets refer. (https://github.com/huggingface/safetensors, "Format")
//
// Errors: CheckpointError.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "runtime/checkpoint/storage_file.h"

namespace runtime {

struct NamedTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  at::Tensor data;  ///< contiguous, as many elements as the shape
};

/// What stands in the file of one tensor.
struct StoredTensor {
  std::string dtype;  ///< "F32", "BF16" …
  std::vector<std::int64_t> shape;
  std::int64_t begin = 0;  ///< bytes from the start of the file
  std::int64_t end = 0;
  std::uint32_t crc32 = 0;  ///< of those bytes (zlib's polynomial); known to the writer only
};

/// Writes the file and makes it durable. Returns where each tensor lies.
std::map<std::string, StoredTensor> write_safetensors(const std::filesystem::path& path,
                                                      const std::vector<NamedTensor>& tensors,
                                                      const std::map<std::string, std::string>& metadata);

class SafetensorsFile {
 public:
  /// Reads and checks the header: offsets in order, inside of the file, of the size that shape and dtype say.
  explicit SafetensorsFile(const std::filesystem::path& path);

  const std::map<std::string, StoredTensor>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  std::int64_t size() const { return file_.size(); }
  void read(std::int64_t offset, void* data, std::size_t bytes) const { file_.read(offset, data, bytes); }

 private:
  InputFile file_;
  std::map<std::string, StoredTensor> tensors_;
  std::map<std::string, std::string> metadata_;
};

/// Of bytes [begin, end) of a file.
std::uint32_t crc32_of(const InputFile& file, std::int64_t begin, std::int64_t end);

/// The format's names of types; empty for one that it does not have.
std::string dtype_name(at::ScalarType type);
/// Nothing for an unknown name.
std::optional<at::ScalarType> scalar_type_of(const std::string& dtype);
/// 0 for an unknown name.
std::int64_t dtype_bytes(const std::string& dtype);

}  // namespace runtime
