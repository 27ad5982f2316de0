#include "runtime/worker_pool/message.h"

#include <cerrno>
#include <cstdint>

#include <sys/socket.h>
#include <unistd.h>

namespace runtime {
namespace {

bool write_all(int descriptor, const char* data, std::size_t bytes) {
  while (bytes > 0) {
    const ssize_t written = send(descriptor, data, bytes, MSG_NOSIGNAL);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    data += written;
    bytes -= static_cast<std::size_t>(written);
  }
  return true;
}

bool read_all(int descriptor, char* data, std::size_t bytes) {
  while (bytes > 0) {
    const ssize_t got = recv(descriptor, data, bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    data += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

}  // namespace

bool write_message(int descriptor, const std::string& message) {
  const std::uint64_t length = message.size();
  return write_all(descriptor, reinterpret_cast<const char*>(&length), sizeof(length)) &&
         write_all(descriptor, message.data(), message.size());
}

std::optional<std::string> read_message(int descriptor) {
  std::uint64_t length = 0;
  if (!read_all(descriptor, reinterpret_cast<char*>(&length), sizeof(length))) return std::nullopt;
  std::string message(length, '\0');
  if (!read_all(descriptor, message.data(), message.size())) return std::nullopt;
  return message;
}

}  // namespace runtime
