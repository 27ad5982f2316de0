#include "runtime/data/text_source.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "runtime/data/data_error.h"

namespace runtime {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t maximum_mappings = 4096;

struct Found {
  std::string path;
  std::int64_t bytes = 0;
};

bool hidden(const fs::path& path) { return path.filename().native().starts_with('.'); }

/// Relative paths of the regular files below `folder`, in order.
std::vector<Found> files_below(const fs::path& folder, std::error_code& error) {
  std::vector<Found> found;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (hidden(entry->path())) {
      entry.disable_recursion_pending();
      continue;
    }
    if (entry->is_symlink(error) || !entry->is_regular_file(error)) continue;
    const auto bytes = static_cast<std::int64_t>(entry->file_size(error));
    if (bytes > 0) found.push_back({entry->path().lexically_relative(folder).native(), bytes});
  }
  std::sort(found.begin(), found.end(), [](const Found& a, const Found& b) { return a.path < b.path; });
  return found;
}

}  // namespace

specs::Result<std::unique_ptr<TextSource>> TextSource::open(const fs::path& path,
                                                            std::int64_t maximum_bytes) {
  specs::Result<std::unique_ptr<TextSource>> result;
  const auto fail = [&](const std::string& message, const std::string& remedy) {
    result.diagnostics.error({path.string()}, message, remedy);
  };
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  std::vector<Found> found;
  fs::path root;
  if (fs::is_directory(status)) {
    root = path;
    found = files_below(path, error);
  } else if (fs::is_regular_file(status)) {
    found.push_back({path.native(), static_cast<std::int64_t>(fs::file_size(path, error))});
  } else if (!fs::exists(status)) {
    fail("no such file or folder: the training text is missing",
         "give --data a text file or a folder of text");
    return result;
  } else {
    fail("is neither a file nor a folder", "give --data a text file or a folder of text");
    return result;
  }
  if (error) {
    fail("cannot be read: " + error.message(), "check its permissions");
    return result;
  }

  std::vector<File> files;
  std::int64_t size = 0;
  for (const Found& file : found) {
    const std::int64_t bytes = maximum_bytes > 0 ? std::min(file.bytes, maximum_bytes - size) : file.bytes;
    if (bytes <= 0) break;
    files.push_back({root.empty() ? file.path : (root / file.path).native(), size, bytes});
    size += bytes;
  }
  if (size == 0) {
    fail(root.empty() ? "is empty: 0 bytes of text" : "holds no text: 0 files with any bytes in them",
         "give --data a text file or a folder of text");
    return result;
  }
  result.value.emplace(new TextSource(std::move(files), size));
  return result;
}

std::span<const std::byte> TextSource::bytes_of(std::size_t file) const {
  if (mapping_of_.empty()) mapping_of_.assign(files_.size(), mappings_.end());
  auto& mapping = mapping_of_[file];
  if (mapping != mappings_.end()) {
    mappings_.splice(mappings_.begin(), mappings_, mapping);
  } else {
    if (mappings_.size() == maximum_mappings) {
      mapping_of_[mappings_.back().file] = mappings_.end();
      mappings_.pop_back();
    }
    mappings_.push_front({file, MappedFile(files_[file].path)});
    mapping = mappings_.begin();
  }
  const auto bytes = mapping->bytes.bytes();
  if (static_cast<std::int64_t>(bytes.size()) < files_[file].size)
    throw DataError(files_[file].path + ": was " + std::to_string(files_[file].size) +
                    " bytes long when training began, is now " + std::to_string(bytes.size()));
  return bytes;
}

void TextSource::read(std::int64_t first, std::span<std::int64_t> tokens) const {
  auto file = std::upper_bound(files_.begin(), files_.end(), first,
                               [](std::int64_t position, const File& f) { return position < f.first; }) -
              files_.begin() - 1;
  for (std::size_t done = 0; done < tokens.size(); ++file) {
    const File& current = files_[static_cast<std::size_t>(file)];
    const auto from = static_cast<std::size_t>(first + static_cast<std::int64_t>(done) - current.first);
    const std::size_t count = std::min(tokens.size() - done, static_cast<std::size_t>(current.size) - from);
    const auto bytes = bytes_of(static_cast<std::size_t>(file)).subspan(from, count);
    std::transform(bytes.begin(), bytes.end(), tokens.begin() + static_cast<std::ptrdiff_t>(done),
                   [](std::byte byte) { return std::to_integer<std::int64_t>(byte); });
    done += count;
  }
}

}  // namespace runtime
