#include "runtime/launch/line_prefix.h"

#include <fmt/format.h>
#include <unistd.h>

namespace runtime {

std::string line_prefix(std::int64_t rank) {
  char host[256] = {};
  if (::gethostname(host, sizeof host - 1) != 0 || host[0] == 0) return fmt::format("rank {}: ", rank);
  return fmt::format("{}:rank {}: ", host, rank);
}

}  // namespace runtime
