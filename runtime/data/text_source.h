// Text as tokens: one for each byte, 256 symbols.
#pragma once

#include <cstdint>
#include <filesystem>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/data/mapped_file.h"
#include "runtime/data/token_source.h"
#include "specs/diagnostics/diagnostic.h"

namespace runtime {

/// The bytes of a file, or of all regular files below a folder one after the other, in the order of their
/// relative paths as bytes. Files and folders whose name begins with a dot, and links, are passed over.
class TextSource final : public TokenSource {
 public:
  /// Only the first `maximum_bytes` are used; 0: all. Errors: a missing path, an unreadable or empty folder.
  static specs::Result<std::unique_ptr<TextSource>> open(const std::filesystem::path& path,
                                                         std::int64_t maximum_bytes = 0);

  std::int64_t size() const override { return size_; }
  void read(std::int64_t first, std::span<std::int64_t> tokens) const override;

 private:
  struct File {
    std::string path;
    std::int64_t first = 0;  ///< position of its first byte
    std::int64_t size = 0;
  };
  struct Mapping {
    std::size_t file;
    MappedFile bytes;
  };

  TextSource(std::vector<File> files, std::int64_t size) : files_(std::move(files)), size_(size) {}
  std::span<const std::byte> bytes_of(std::size_t file) const;

  std::vector<File> files_;
  std::int64_t size_;
  /// Most recently used first, and where each file's entry is: the system limits how many mappings a process
  /// may have.
  mutable std::list<Mapping> mappings_;
  mutable std::vector<std::list<Mapping>::iterator> mapping_of_;
};

}  // namespace runtime
