#include "specs/language/text_file.h"

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace specs {

namespace {

constexpr std::size_t largest_file = std::size_t{16} << 20;

SourcePosition place(const std::filesystem::path& path) { return {path.string(), 0, 0}; }

std::string reason(int error) { return std::generic_category().message(error); }

/// Closes on every way out.
class FileDescriptor {
 public:
  explicit FileDescriptor(int descriptor) : descriptor_(descriptor) {}
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return ::fsync(descriptor) == 0 || errno == EINVAL;  // EINVAL: the file system has nothing to sync
}

}  // namespace

Result<std::string> read_text_file(const std::filesystem::path& path) {
  Result<std::string> result;
  const auto fail = [&](const std::string& message, const std::string& remedy = {}) {
    result.diagnostics.error(place(path), message, remedy);
    return result;
  };
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return fail("is a folder, not a file");
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) {
    const int error = errno;
    if (error == ENOENT) return fail("no such file", "check the path");
    return fail(fmt::format("cannot be opened: {}", reason(error)));
  }
  std::string text;
  std::string block(std::size_t{64} << 10, '\0');
  while (true) {
    const ssize_t count = ::read(file.get(), block.data(), block.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail(fmt::format("cannot be read: {}", reason(errno)));
    if (count == 0) break;
    text.append(block, 0, static_cast<std::size_t>(count));
    if (text.size() > largest_file)
      return fail(fmt::format("is larger than {} MiB", largest_file >> 20), "is this the right file?");
  }
  result.value = std::move(text);
  return result;
}

namespace {

/// A device, a pipe or a terminal keeps what it is: the text goes straight into it.
Diagnostics write_through(const std::filesystem::path& path, std::string_view text) {
  Diagnostics diagnostics;
  const FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (file.get() < 0 || !write_all(file.get(), text))
    diagnostics.error(place(path), fmt::format("cannot be written: {}", reason(errno)));
  return diagnostics;
}

}  // namespace

Diagnostics no_folder(const std::filesystem::path& path) {
  Diagnostics diagnostics;
  std::error_code error;
  for (std::filesystem::path above = path; !above.empty(); above = above.parent_path()) {
    if (std::filesystem::is_directory(above, error)) break;
    if (std::filesystem::exists(above, error)) {
      diagnostics.error(place(above), "is a file, not a folder", "name another folder");
      break;
    }
    if (above == above.parent_path()) break;
  }
  return diagnostics;
}

Diagnostics unwritable(const std::filesystem::path& path) {
  Diagnostics diagnostics;
  std::error_code error;
  if (path.empty())
    diagnostics.error({}, "the name of the file to write is empty", "name a file");
  else if (std::filesystem::is_directory(path, error))
    diagnostics.error(place(path), "is a folder, not a file", "name a file in it");
  else
    diagnostics = no_folder(path.parent_path());
  return diagnostics;
}

Diagnostics write_text_file(const std::filesystem::path& wanted, std::string_view text) {
  Diagnostics diagnostics = unwritable(wanted);
  if (diagnostics.has_errors()) return diagnostics;
  std::error_code error;
  // A link is followed, so that what it names gets the new text and the link stays.
  const std::filesystem::path path =
      std::filesystem::is_symlink(wanted, error) ? std::filesystem::weakly_canonical(wanted, error) : wanted;
  const std::filesystem::file_status status = std::filesystem::status(wanted, error);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
    return write_through(wanted, text);
  error.clear();
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), error);
  if (error) {
    diagnostics.error(place(path.parent_path()), fmt::format("cannot be made: {}", error.message()));
    return diagnostics;
  }
  const std::string temporary = fmt::format("{}.{}.tmp", path.string(), ::getpid());
  bool written = false;
  int system_error = 0;
  {
    const FileDescriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    written = file.get() >= 0 && write_all(file.get(), text);
    system_error = errno;
  }
  if (written && ::rename(temporary.c_str(), path.c_str()) != 0) {
    written = false;
    system_error = errno;
  }
  if (!written) {
    ::unlink(temporary.c_str());
    diagnostics.error(place(path), fmt::format("cannot be written: {}", reason(system_error)));
  }
  return diagnostics;
}

}  // namespace specs
