// What `dsrun --probe` measured on this machine's CPUs, and the file that carries it to `dsplan`.
//
// The file is TOML at `default_probe_path()`; the `localhost` node takes its rates from there.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "specs/diagnostics/diagnostic.h"
#include "specs/language/measured_rates.h"

namespace specs {

inline constexpr std::int64_t probe_format_version = 1;

struct LocalhostProbe {
  std::int64_t format_version = probe_format_version;
  std::string processor;                         ///< model name; a probe of another processor is not used
  std::string library;                           ///< "libtorch 2.15.0"
  std::string measured_at;                       ///< ISO 8601, UTC
  std::vector<GemmRate> gemm_rates;              ///< one thread, sizes up to 1024; one device is one core
  double memory_bytes_per_second = 0;            ///< of one core that reads and writes (read + written bytes)
  double operator_seconds = 0;                   ///< fixed cost of one tensor operator
  std::vector<CollectiveRate> collective_rates;  ///< Gloo at 2 and 4 ranks
  bool operator==(const LocalhostProbe&) const = default;
};

/// `${XDG_CACHE_HOME:-~/.cache}/dsplan/localhost.toml`; empty where neither variable gives a folder.
std::filesystem::path default_probe_path();

/// Text of the file.
std::string write_probe_text(const LocalhostProbe& probe);

/// Writes beside and renames, makes the folder where it is missing. An empty result is success.
Diagnostics write_probe(const LocalhostProbe& probe, const std::filesystem::path& path);

/// Errors: no such file, not TOML, unknown keys, rates out of range, another format version.
Result<LocalhostProbe> read_probe(const std::filesystem::path& path);

}  // namespace specs
