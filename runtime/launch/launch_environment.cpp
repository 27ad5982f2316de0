#include "runtime/launch/launch_environment.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

namespace runtime {
namespace {

struct Variables {
  std::vector<std::string> all;       ///< any of these: the launcher was at work
  std::vector<std::string> required;  ///< each of these must be there
};

/// MASTER_ADDR and MASTER_PORT are not among them: users set these for any launcher.
const std::map<Launcher, Variables>& variables() {
  static const std::map<Launcher, Variables> table{
      {Launcher::torchrun,
       {{"RANK", "WORLD_SIZE", "LOCAL_RANK"}, {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}}},
      {Launcher::slurm,
       {{"SLURM_PROCID", "SLURM_LOCALID"}, {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_JOB_NODELIST"}}},
      {Launcher::open_mpi,
       {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}, {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}}},
      {Launcher::hydra, {{"PMI_RANK", "PMI_SIZE"}, {"PMI_RANK", "PMI_SIZE", "MASTER_ADDR", "MASTER_PORT"}}},
  };
  return table;
}

constexpr std::array precedence{Launcher::torchrun, Launcher::slurm, Launcher::open_mpi, Launcher::hydra};

/// Reads variables and collects what is wrong with them.
class Reader {
 public:
  Reader(const EnvironmentMap& environment, specs::Diagnostics& diagnostics)
      : environment_(environment), diagnostics_(diagnostics) {}

  bool has(const std::string& name) const { return environment_.contains(name); }
  std::string text(const std::string& name) const {
    const auto found = environment_.find(name);
    return found == environment_.end() ? std::string() : found->second;
  }
  std::int64_t integer(const std::string& name, std::int64_t least, std::int64_t most,
                       std::int64_t missing = 0) const {
    if (!has(name)) return missing;
    const std::string value = text(name);
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error == std::errc() && end == value.data() + value.size() && least <= number && number <= most)
      return number;
    diagnostics_.error({}, fmt::format("environment variable {}={} is not a whole number from {} to {}", name,
                                       value, least, most));
    return least;
  }

 private:
  const EnvironmentMap& environment_;
  specs::Diagnostics& diagnostics_;
};

constexpr std::int64_t most_ranks = 10'000'000;

bool any_of(const Reader& reader, Launcher launcher) {
  const auto& names = variables().at(launcher).all;
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) { return reader.has(name); });
}

std::vector<std::string> missing_of(const Reader& reader, Launcher launcher) {
  std::vector<std::string> missing;
  for (const std::string& name : variables().at(launcher).required)
    if (!reader.has(name)) missing.push_back(name);
  return missing;
}

std::string seen_of(const EnvironmentMap& environment) {
  std::vector<std::string> seen;
  for (const Launcher launcher : precedence)
    for (const std::string& name : variables().at(launcher).all)
      if (const auto found = environment.find(name); found != environment.end())
        seen.push_back(name + "=" + found->second);
  for (const char* name : {"MASTER_ADDR", "MASTER_PORT"})
    if (const auto found = environment.find(name); found != environment.end())
      seen.push_back(std::string(name) + "=" + found->second);
  return seen.empty() ? "none" : fmt::format("{}", fmt::join(seen, " "));
}

/// Of an identifier that all ranks of a job share; above the ports that services use, below the ephemeral
/// ones.
std::uint16_t port_for(std::uint64_t job) { return static_cast<std::uint16_t>(15000 + job % 17000); }

std::uint64_t hash_of(const std::string& text) {
  std::uint64_t hash = 1469598103934665603ULL;  // FNV-1a, so that all hosts agree
  for (const unsigned char c : text) hash = (hash ^ c) * 1099511628211ULL;
  return hash;
}

RankIdentity torchrun_identity(const Reader& reader) {
  RankIdentity identity{.launcher = Launcher::torchrun};
  identity.world_size = reader.integer("WORLD_SIZE", 1, most_ranks);
  identity.rank = reader.integer("RANK", 0, identity.world_size - 1);
  identity.local_rank = reader.integer("LOCAL_RANK", 0, most_ranks, 0);
  identity.local_world_size = reader.integer("LOCAL_WORLD_SIZE", 1, most_ranks, 1);
  identity.store_is_hosted = reader.text("TORCHELASTIC_USE_AGENT_STORE") == "True";
  identity.restart = reader.integer("TORCHELASTIC_RESTART_COUNT", 0, most_ranks, 0);
  return identity;
}

/// "07" or "07-11".
bool is_range(std::string_view text) {
  const auto is_number = [](std::string_view part) {
    return !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
  };
  const std::size_t dash = text.find('-');
  return dash == std::string_view::npos ? is_number(text)
                                        : is_number(text.substr(0, dash)) && is_number(text.substr(dash + 1));
}

bool are_ranges(std::string_view text) {
  for (std::size_t comma = 0; (comma = text.find(',')) != std::string_view::npos;
       text.remove_prefix(comma + 1))
    if (!is_range(text.substr(0, comma))) return false;
  return is_range(text);
}

/// Takes the first host with its brackets off the list; false where it is none.
bool take_host(std::string_view& list) {
  const std::size_t before = list.size();
  while (!list.empty() && list.front() != ',') {
    const bool bracket = list.front() == '[';
    const std::size_t close = bracket ? list.find(']') : 0;
    if (bracket && (close == std::string_view::npos || !are_ranges(list.substr(1, close - 1)))) return false;
    if (!bracket && std::isalnum(static_cast<unsigned char>(list.front())) == 0 &&
        std::string_view("-._").find(list.front()) == std::string_view::npos)
      return false;
    list.remove_prefix(close + 1);
  }
  return list.size() < before;
}

/// "gpu[07-08,11],login-1".
bool is_node_list(std::string_view list) {
  while (take_host(list)) {
    if (list.empty()) return true;
    list.remove_prefix(1);
  }
  return false;
}

RankIdentity slurm_identity(const Reader& reader, specs::Diagnostics& diagnostics) {
  RankIdentity identity{.launcher = Launcher::slurm};
  identity.world_size = reader.integer("SLURM_NTASKS", 1, most_ranks);
  identity.rank = reader.integer("SLURM_PROCID", 0, identity.world_size - 1);
  identity.local_rank = reader.integer("SLURM_LOCALID", 0, most_ranks, 0);
  identity.local_world_size = reader.integer("SLURM_NTASKS_PER_NODE", 1, most_ranks, 1);
  identity.restart = reader.integer("SLURM_RESTART_COUNT", 0, most_ranks, 0);
  const std::string nodes = reader.text("SLURM_JOB_NODELIST");
  if (!reader.has("MASTER_ADDR") && !is_node_list(nodes))
    diagnostics.error({},
                      fmt::format("environment variable SLURM_JOB_NODELIST={} is no list of hosts", nodes),
                      "expected one such as node[01-04,07],login; or give MASTER_ADDR");
  identity.rendezvous_host = first_host(nodes);
  identity.rendezvous_port =
      port_for(hash_of(reader.text("SLURM_JOB_ID") + "." + reader.text("SLURM_STEP_ID")));
  return identity;
}

RankIdentity open_mpi_identity(const Reader& reader, specs::Diagnostics& diagnostics) {
  RankIdentity identity{.launcher = Launcher::open_mpi};
  identity.world_size = reader.integer("OMPI_COMM_WORLD_SIZE", 1, most_ranks);
  identity.rank = reader.integer("OMPI_COMM_WORLD_RANK", 0, identity.world_size - 1);
  identity.local_rank = reader.integer("OMPI_COMM_WORLD_LOCAL_RANK", 0, most_ranks, 0);
  identity.local_world_size = reader.integer("OMPI_COMM_WORLD_LOCAL_SIZE", 1, most_ranks, 1);
  if (identity.local_world_size == identity.world_size) identity.rendezvous_host = "127.0.0.1";
  identity.rendezvous_port = port_for(hash_of(reader.text("PMIX_NAMESPACE")));
  if (identity.rendezvous_host.empty() && !reader.has("MASTER_ADDR"))
    diagnostics.error({}, "Open MPI does not tell the ranks where they meet, and MASTER_ADDR is not set",
                      "mpirun -x MASTER_ADDR=HOST_OF_RANK_0 -x MASTER_PORT=29500 …");
  return identity;
}

RankIdentity hydra_identity(const Reader& reader) {
  RankIdentity identity{.launcher = Launcher::hydra};
  identity.world_size = reader.integer("PMI_SIZE", 1, most_ranks);
  identity.rank = reader.integer("PMI_RANK", 0, identity.world_size - 1);
  identity.local_rank = reader.integer("MPI_LOCALRANKID", 0, most_ranks, 0);
  identity.local_world_size = reader.integer("MPI_LOCALNRANKS", 1, most_ranks, 1);
  return identity;
}

/// Slurm and an MPI launcher inside it that give different answers: either would train something, one of them
/// wrongly.
void refuse_disagreement(const Reader& reader, const EnvironmentMap& environment,
                         specs::Diagnostics& diagnostics) {
  const auto differ = [&](const char* a, const char* b) {
    return reader.has(a) && reader.has(b) && reader.text(a) != reader.text(b);
  };
  if (differ("SLURM_PROCID", "OMPI_COMM_WORLD_RANK") || differ("SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE") ||
      differ("SLURM_PROCID", "PMI_RANK") || differ("SLURM_NTASKS", "PMI_SIZE"))
    diagnostics.error({}, "two launchers disagree on this process: " + seen_of(environment),
                      "say which one counts: --launcher slurm, openmpi or hydra");
}

std::optional<Launcher> choose(const Reader& reader, Launcher asked) {
  if (asked == Launcher::local) return std::nullopt;
  if (asked != Launcher::automatic) return asked;
  for (const Launcher launcher : precedence)
    if (any_of(reader, launcher)) return launcher;
  return std::nullopt;
}

}  // namespace

EnvironmentMap process_environment() {
  EnvironmentMap environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos)
      environment.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return environment;
}

std::string first_host(std::string_view node_list) {
  std::string host;
  while (!node_list.empty() && node_list.front() != ',') {
    std::size_t taken = 1;
    if (node_list.front() == '[') {
      const std::size_t close = node_list.find(']');
      if (close == std::string_view::npos) return host;
      host += node_list.substr(1, node_list.find_first_of("-,]") - 1);
      taken = close + 1;
    } else {
      host += node_list.front();
    }
    node_list.remove_prefix(taken);
  }
  return host;
}

specs::Result<std::optional<RankIdentity>> read_launch_environment(const EnvironmentMap& environment,
                                                                   Launcher asked) {
  specs::Result<std::optional<RankIdentity>> result;
  const Reader reader(environment, result.diagnostics);
  const std::optional<Launcher> launcher = choose(reader, asked);
  if (!launcher) {
    result.value = std::optional<RankIdentity>();
    return result;
  }
  if (const std::vector<std::string> missing = missing_of(reader, *launcher); !missing.empty()) {
    result.diagnostics.error(
        {},
        fmt::format("this looks like a rank that {} started, but {} {} not set (seen: {})",
                    specs::name_of(*launcher), fmt::join(missing, ", "), missing.size() == 1 ? "is" : "are",
                    seen_of(environment)),
        "start all ranks with that launcher, or unset its variables, or give --launcher local");
    return result;
  }
  if (asked == Launcher::automatic && *launcher != Launcher::torchrun)
    refuse_disagreement(reader, environment, result.diagnostics);

  RankIdentity identity;
  if (*launcher == Launcher::torchrun) identity = torchrun_identity(reader);
  if (*launcher == Launcher::slurm) identity = slurm_identity(reader, result.diagnostics);
  if (*launcher == Launcher::open_mpi) identity = open_mpi_identity(reader, result.diagnostics);
  if (*launcher == Launcher::hydra) identity = hydra_identity(reader);
  if (reader.has("MASTER_ADDR")) identity.rendezvous_host = reader.text("MASTER_ADDR");
  if (reader.has("MASTER_PORT"))
    identity.rendezvous_port = static_cast<std::uint16_t>(reader.integer("MASTER_PORT", 1, 65535));
  if (!result.diagnostics.has_errors()) result.value = std::optional<RankIdentity>(identity);
  return result;
}

}  // namespace runtime
