#include "planner/plan/versions.h"

#include <cstdint>

#include <fmt/format.h>

#include "cost_models/embedded_constants.h"

namespace planner {

std::string program_version() { return "dsplan " DSPLAN_VERSION; }

std::string cost_model_version() {
  std::uint64_t hash = 0xcbf29ce484222325U;  // 64-bit FNV-1a
  for (const specs::EmbeddedFile& file : cost_models::embedded_constants())
    for (const char byte : file.text) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3U;
  return fmt::format("{} constants {:016x}", DSPLAN_VERSION, hash);
}

}  // namespace planner
