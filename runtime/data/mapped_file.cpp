#include "runtime/data/mapped_file.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/data/data_error.h"

namespace runtime {

namespace {

[[noreturn]] void fail(const std::filesystem::path& path, const char* what) {
  throw DataError(path.string() + ": cannot " + what + ": " + std::strerror(errno));
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) fail(path, "open");
  struct stat status {};
  void* data = nullptr;
  const bool known = ::fstat(file, &status) == 0;
  if (known && status.st_size > 0)
    data = ::mmap(nullptr, static_cast<std::size_t>(status.st_size), PROT_READ, MAP_SHARED, file, 0);
  const int reason = errno;
  ::close(file);
  errno = reason;
  if (!known) fail(path, "read the size");
  if (data == MAP_FAILED) fail(path, "map");
  data_ = static_cast<const std::byte*>(data);
  size_ = static_cast<std::size_t>(status.st_size);
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

}  // namespace runtime
