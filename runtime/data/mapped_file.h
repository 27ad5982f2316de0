// A file mapped into memory for reading.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace runtime {

class MappedFile {
 public:
  /// Errors: DataError with the path and the system's reason.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace runtime
