// Who this process is among the ranks, from the variables that torchrun, Slurm, Open MPI or Hydra set.
//
// A pure function of the environment. Where several launchers left variables, torchrun's count first (it is
// started by the others), then Slurm's, Open MPI's, Hydra's; but Slurm and an MPI launcher that disagree on
// rank or world size are refused, as is a set that lacks a variable. Without any, dsrun starts the ranks
// itself.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "specs/diagnostics/diagnostic.h"
#include "specs/diagnostics/enum_names.h"

namespace runtime {

enum class Launcher : std::uint8_t {
  automatic,  ///< whichever has left its variables, else local
  local,      ///< dsrun starts all ranks itself
  torchrun,
  slurm,
  open_mpi,
  hydra,  ///< MPICH, Intel MPI
};

}  // namespace runtime

template <>
struct specs::EnumNames<runtime::Launcher> {
  static constexpr std::array<std::pair<runtime::Launcher, std::string_view>, 6> names{{
      {runtime::Launcher::automatic, "auto"},
      {runtime::Launcher::local, "local"},
      {runtime::Launcher::torchrun, "torchrun"},
      {runtime::Launcher::slurm, "slurm"},
      {runtime::Launcher::open_mpi, "openmpi"},
      {runtime::Launcher::hydra, "hydra"},
  }};
};

namespace runtime {

using EnvironmentMap = std::map<std::string, std::string>;

/// The variables of the calling process.
EnvironmentMap process_environment();

struct RankIdentity {
  Launcher launcher = Launcher::local;
  std::int64_t rank = 0;
  std::int64_t world_size = 1;
  std::int64_t local_rank = 0;
  std::int64_t local_world_size = 1;
  std::string rendezvous_host;
  std::uint16_t rendezvous_port = 0;
  /// The launcher hosts the store and every rank connects; else rank 0 hosts it.
  bool store_is_hosted = false;
  std::int64_t restart = 0;  ///< keys of an earlier start are not to be read
  bool operator==(const RankIdentity&) const = default;
};

/// Nothing where dsrun is to start the ranks itself. Errors name the variables seen and the ones that lack.
specs::Result<std::optional<RankIdentity>> read_launch_environment(const EnvironmentMap& environment,
                                                                   Launcher launcher = Launcher::automatic);

/// The first host of a Slurm node list: "node[01-04,7],login" gives "node01", "rack[0-3]n[1-8]" "rack0n1".
/// Empty for an empty list.
std::string first_host(std::string_view node_list);

}  // namespace runtime
