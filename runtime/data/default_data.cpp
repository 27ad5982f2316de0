#include "runtime/data/default_data.h"

#include <string>

#include <link.h>

namespace runtime {

namespace {

namespace fs = std::filesystem;

/// dl_iterate_phdr calls this for each loaded library until it returns other than 0.
int find_libtorch(dl_phdr_info* library, std::size_t, void* found) {
  const fs::path path = library->dlpi_name;
  if (!path.filename().native().starts_with("libtorch_cpu.so")) return 0;
  *static_cast<fs::path*>(found) = path;
  return 1;
}

bool holds_headers(const fs::path& folder) {
  std::error_code error;
  return fs::is_directory(folder / "torch", error);
}

}  // namespace

std::optional<fs::path> default_data() {
  fs::path library;
  if (::dl_iterate_phdr(find_libtorch, &library) != 0) {
    std::error_code error;
    const fs::path include = fs::weakly_canonical(library, error).parent_path().parent_path() / "include";
    if (!error && holds_headers(include)) return include;
  }
  const fs::path built_with = DSPLAN_LIBTORCH_INCLUDE;
  if (holds_headers(built_with)) return built_with;
  return std::nullopt;
}

}  // namespace runtime
