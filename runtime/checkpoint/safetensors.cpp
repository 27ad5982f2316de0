#include "runtime/checkpoint/safetensors.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <zlib.h>

#include "runtime/checkpoint/checkpoint_error.h"

namespace runtime {

namespace {

constexpr std::int64_t length_bytes = 8;
/// What the format's own reader accepts (safetensors, MAX_HEADER_SIZE).
constexpr std::int64_t maximum_header_bytes = 100'000'000;
constexpr std::size_t block_bytes = std::size_t{1} << 22;

struct DtypeName {
  at::ScalarType type;
  const char* name;
  std::int64_t bytes;
};
constexpr std::array<DtypeName, 9> dtypes{{{at::kFloat, "F32", 4},
                                           {at::kDouble, "F64", 8},
                                           {at::kBFloat16, "BF16", 2},
                                           {at::kHalf, "F16", 2},
                                           {at::kLong, "I64", 8},
                                           {at::kInt, "I32", 4},
                                           {at::kShort, "I16", 2},
                                           {at::kByte, "U8", 1},
                                           {at::kBool, "BOOL", 1}}};

using Json = nlohmann::ordered_json;

/// The header with its length in front, and where each tensor will lie.
std::string header_of(const std::vector<NamedTensor>& tensors,
                      const std::map<std::string, std::string>& metadata,
                      std::map<std::string, StoredTensor>& stored) {
  Json header = Json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::int64_t offset = 0;
  for (const NamedTensor& tensor : tensors) {
    StoredTensor& entry = stored[tensor.name];
    entry.dtype = dtype_name(tensor.data.scalar_type());
    entry.shape = tensor.shape;
    entry.begin = offset;
    offset += static_cast<std::int64_t>(tensor.data.nbytes());
    entry.end = offset;
    header[tensor.name] = {
        {"dtype", entry.dtype}, {"shape", entry.shape}, {"data_offsets", std::array{entry.begin, entry.end}}};
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const auto length = static_cast<std::uint64_t>(text.size());
  std::string prefix(sizeof length, '\0');
  std::memcpy(prefix.data(), &length, sizeof length);
  for (auto& [name, entry] : stored) {
    entry.begin += length_bytes + static_cast<std::int64_t>(length);
    entry.end += length_bytes + static_cast<std::int64_t>(length);
  }
  return prefix + text;
}

/// Writes in blocks, so that the checksum is taken while the bytes are in the cache.
std::uint32_t write_with_crc(OutputFile& file, const void* data, std::size_t bytes) {
  uLong crc = ::crc32(0, nullptr, 0);
  for (std::size_t done = 0; done < bytes; done += block_bytes) {
    const std::size_t count = std::min(block_bytes, bytes - done);
    const char* block = static_cast<const char*>(data) + done;
    crc = ::crc32(crc, reinterpret_cast<const Bytef*>(block), static_cast<uInt>(count));
    file.write(block, count);
  }
  return static_cast<std::uint32_t>(crc);
}

}  // namespace

std::string dtype_name(at::ScalarType type) {
  for (const DtypeName& dtype : dtypes)
    if (dtype.type == type) return dtype.name;
  return {};
}

std::optional<at::ScalarType> scalar_type_of(const std::string& name) {
  for (const DtypeName& dtype : dtypes)
    if (dtype.name == name) return dtype.type;
  return std::nullopt;
}

std::int64_t dtype_bytes(const std::string& name) {
  for (const DtypeName& dtype : dtypes)
    if (dtype.name == name) return dtype.bytes;
  return 0;
}

std::map<std::string, StoredTensor> write_safetensors(const std::filesystem::path& path,
                                                      const std::vector<NamedTensor>& tensors,
                                                      const std::map<std::string, std::string>& metadata) {
  std::map<std::string, StoredTensor> stored;
  OutputFile file(path);
  file.write(header_of(tensors, metadata, stored));
  for (const NamedTensor& tensor : tensors) {
    const at::Tensor data = tensor.data.cpu().contiguous();
    stored[tensor.name].crc32 = write_with_crc(file, data.const_data_ptr(), data.nbytes());
  }
  file.finish();
  return stored;
}

std::uint32_t crc32_of(const InputFile& file, std::int64_t begin, std::int64_t end) {
  std::vector<char> block(std::min(block_bytes, static_cast<std::size_t>(end - begin)));
  uLong crc = ::crc32(0, nullptr, 0);
  for (std::int64_t offset = begin; offset < end;) {
    const std::size_t count = std::min(block.size(), static_cast<std::size_t>(end - offset));
    file.read(offset, block.data(), count);
    crc = ::crc32(crc, reinterpret_cast<const Bytef*>(block.data()), static_cast<uInt>(count));
    offset += static_cast<std::int64_t>(count);
  }
  return static_cast<std::uint32_t>(crc);
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) : file_(path) {
  const auto fail = [&](const std::string& what) {
    throw CheckpointError(fmt::format("{}: {}", path.native(), what));
  };
  if (file_.size() < length_bytes) fail("is no safetensors file: shorter than 8 bytes");
  std::uint64_t length = 0;
  file_.read(0, &length, sizeof length);
  const std::int64_t room = std::min(maximum_header_bytes, file_.size() - length_bytes);
  if (length > static_cast<std::uint64_t>(room))
    fail(fmt::format("announces a header of {} bytes, but has {} bytes after the first 8", length,
                     file_.size() - length_bytes));
  std::string text(length, '\0');
  file_.read(length_bytes, text.data(), text.size());

  const std::int64_t base = length_bytes + static_cast<std::int64_t>(length);
  try {
    const Json header = Json::parse(text);
    for (const auto& [name, entry] : header.items()) {
      if (name == "__metadata__") {
        metadata_ = entry.get<std::map<std::string, std::string>>();
        continue;
      }
      StoredTensor tensor;
      tensor.dtype = entry.at("dtype").get<std::string>();
      tensor.shape = entry.at("shape").get<std::vector<std::int64_t>>();
      const auto offsets = entry.at("data_offsets").get<std::array<std::int64_t, 2>>();
      std::int64_t bytes = dtype_bytes(tensor.dtype);
      if (bytes == 0) fail(fmt::format("tensor {} has the unknown type {}", name, tensor.dtype));
      for (const std::int64_t extent : tensor.shape)
        if (extent < 0 || __builtin_mul_overflow(bytes, extent, &bytes))
          fail(fmt::format("tensor {} has an impossible shape", name));
      if (offsets[0] < 0 || offsets[1] < offsets[0] || offsets[1] - offsets[0] != bytes ||
          offsets[1] > file_.size() - base)
        fail(fmt::format("tensor {} of {} bytes is said to lie at bytes {} to {} of {}", name, bytes,
                         offsets[0], offsets[1], file_.size() - base));
      tensor.begin = base + offsets[0];
      tensor.end = base + offsets[1];
      tensors_.emplace(name, std::move(tensor));
    }
  } catch (const Json::exception& error) {
    fail(fmt::format("its header is no JSON of the safetensors format: {}", error.what()));
  }
}

}  // namespace runtime
