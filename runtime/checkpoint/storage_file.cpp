#include "runtime/checkpoint/storage_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/checkpoint/checkpoint_error.h"

namespace runtime {

namespace {

/// Of one system call; Linux transfers at most 2 GiB at once.
constexpr std::size_t maximum_transfer = std::size_t{1} << 30;

[[noreturn]] void fail(const std::filesystem::path& path, std::string_view what, int reason) {
  throw CheckpointError(fmt::format("{}: cannot {}: {}", path.native(), what, std::strerror(reason)));
}

}  // namespace

OutputFile::OutputFile(std::filesystem::path path)
    : path_(std::move(path)), file_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {
  if (file_ < 0) fail(path_, "create", errno);
}

OutputFile::~OutputFile() {
  if (file_ >= 0) ::close(file_);
}

void OutputFile::write(const void* data, std::size_t bytes) {
  const auto* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t count = ::write(file_, from, std::min(bytes, maximum_transfer));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0)
      fail(path_, fmt::format("write {} bytes after {}", bytes, written_), count < 0 ? errno : ENOSPC);
    from += count;
    bytes -= static_cast<std::size_t>(count);
    written_ += count;
  }
}

void OutputFile::finish() {
  if (::fsync(file_) != 0) fail(path_, "bring to the device", errno);
  if (::close(std::exchange(file_, -1)) != 0) fail(path_, "close", errno);
}

InputFile::InputFile(std::filesystem::path path)
    : path_(std::move(path)), file_(::open(path_.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (file_ < 0) fail(path_, "open", errno);
  struct stat status {};
  if (::fstat(file_, &status) != 0) {
    const int reason = errno;
    ::close(file_);
    fail(path_, "read the size", reason);
  }
  size_ = status.st_size;
}

InputFile::~InputFile() {
  if (file_ >= 0) ::close(file_);
}

InputFile::InputFile(InputFile&& other) noexcept
    : path_(std::move(other.path_)), file_(std::exchange(other.file_, -1)), size_(other.size_) {}

void InputFile::read(std::int64_t offset, void* data, std::size_t bytes) const {
  auto* to = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t count = ::pread(file_, to, std::min(bytes, maximum_transfer), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(path_, fmt::format("read at byte {}", offset), errno);
    if (count == 0)
      throw CheckpointError(
          fmt::format("{}: ends at byte {}, {} bytes too early", path_.native(), offset, bytes));
    to += count;
    offset += count;
    bytes -= static_cast<std::size_t>(count);
  }
}

void sync_folder(const std::filesystem::path& folder) {
  const int file = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) fail(folder, "open", errno);
  const int result = ::fsync(file);
  const int reason = errno;
  ::close(file);
  if (result != 0) fail(folder, "bring to the device", reason);
}

void write_whole(const std::filesystem::path& path, std::string_view content) {
  const std::filesystem::path temporary = path.native() + ".tmp";
  OutputFile file(temporary);
  file.write(content);
  file.finish();
  if (::rename(temporary.c_str(), path.c_str()) != 0) fail(path, "rename from " + temporary.native(), errno);
}

}  // namespace runtime
