#include "cli/dsplan/output/file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>

#include <fmt/format.h>
#include <unistd.h>

namespace cli {
namespace {

specs::Diagnostics failure(const std::filesystem::path& path, int error) {
  specs::Diagnostics diagnostics;
  diagnostics.error({path.string(), 0, 0}, fmt::format("cannot be written: {}", std::strerror(error)),
                    "name another file with -o");
  return diagnostics;
}

}  // namespace

specs::Diagnostics write_file(const std::filesystem::path& path, std::string_view text) {
  const std::filesystem::path temporary = path.string() + fmt::format(".{}.tmp", getpid());
  std::FILE* file = std::fopen(temporary.c_str(), "wb");
  if (file == nullptr) return failure(path, errno);
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const int write_error = errno;
  const bool closed = std::fclose(file) == 0;
  std::error_code error;
  if (!written || !closed) {
    std::filesystem::remove(temporary, error);
    return failure(path, written ? errno : write_error);
  }
  std::filesystem::rename(temporary, path, error);
  if (!error) return {};
  std::error_code ignored;
  std::filesystem::remove(temporary, ignored);
  return failure(path, error.value());
}

}  // namespace cli
