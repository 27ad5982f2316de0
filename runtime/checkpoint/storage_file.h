// Files that are written whole or not at all, and read by byte range.
//
// Errors of everything here: CheckpointError with the path and the system's reason.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace runtime {

class OutputFile {
 public:
  /// Creates the file, or empties it.
  explicit OutputFile(std::filesystem::path path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(const void* data, std::size_t bytes);
  void write(std::string_view text) { write(text.data(), text.size()); }
  std::int64_t written() const { return written_; }
  /// To the device, and closed.
  void finish();

 private:
  std::filesystem::path path_;
  int file_;
  std::int64_t written_ = 0;
};

class InputFile {
 public:
  explicit InputFile(std::filesystem::path path);
  ~InputFile();
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&&) = delete;

  std::int64_t size() const { return size_; }
  /// All of the bytes, or an error that says how many there are.
  void read(std::int64_t offset, void* data, std::size_t bytes) const;

 private:
  std::filesystem::path path_;
  int file_;
  std::int64_t size_ = 0;
};

/// Makes the entries of a folder durable.
void sync_folder(const std::filesystem::path& folder);

/// Writes `<path>.tmp`, then renames it: a reader sees the old content or the new.
void write_whole(const std::filesystem::path& path, std::string_view content);

}  // namespace runtime
