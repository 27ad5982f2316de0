// Small text files, read whole and written whole or not at all.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "specs/diagnostics/diagnostic.h"

namespace specs {

/// Errors, each with the file as its place: not there, a folder, unreadable, larger than 16 MiB.
Result<std::string> read_text_file(const std::filesystem::path& path);

/// Why nothing can be made in a folder of this name, as far as can be seen before it is tried: it, or one
/// above it, is a file.
Diagnostics no_folder(const std::filesystem::path& path);

/// Why a file of this name cannot be written, as far: the name is empty or a folder's, or there is
/// `no_folder`.
Diagnostics unwritable(const std::filesystem::path& path);

/// Writes beside and renames, so that the file is whole or as before; makes the folder where it is missing. A
/// symbolic link is followed; a device or a pipe is written straight through.
/// Errors carry the system's reason. Empty: written.
Diagnostics write_text_file(const std::filesystem::path& path, std::string_view text);

}  // namespace specs
