// Whole messages over a stream socket: a length, then that many bytes.
#pragma once

#include <optional>
#include <string>

namespace runtime {

/// False where the other side is gone.
bool write_message(int descriptor, const std::string& message);
/// Nothing where the other side is gone.
std::optional<std::string> read_message(int descriptor);

}  // namespace runtime
