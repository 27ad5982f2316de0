#include "specs/language/localhost.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <sched.h>

namespace specs {

namespace {

std::string read_small_file(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} ? std::optional(value) : std::nullopt;
}

/// What stands behind "name:" or "name " at the start of a line.
std::optional<std::string> field(const std::string& text, std::string_view name) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(name)) continue;
    const std::size_t value = line.find_first_not_of(" \t:", name.size());
    if (value != std::string::npos && value > name.size()) return line.substr(value);
  }
  return std::nullopt;
}

std::int64_t kibibytes(const std::string& text, std::string_view name) {
  const auto value = field(text, name);
  return value ? parse_integer(*value).value_or(0) * 1024 : 0;
}

/// The folders of a control group and of all groups around it, which limit it too.
std::vector<std::string> with_parents(const std::string& base, std::string group) {
  std::vector<std::string> folders;
  while (group.size() > 1) {
    folders.push_back(base + group);
    group.resize(group.rfind('/'));
  }
  folders.push_back(base);
  return folders;
}

/// The group of this process in the unified hierarchy ("0::/…") or under a controller of the old one
/// ("4:memory:/…").
std::string group_of(const std::string& cgroup_file, std::string_view controller) {
  std::istringstream lines(cgroup_file);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string_view controllers = std::string_view(line).substr(first + 1, second - first - 1);
    const bool matches =
        controller.empty()
            ? controllers.empty()
            : ("," + std::string(controllers) + ",").find("," + std::string(controller) + ",") !=
                  std::string::npos;
    if (matches) return line.substr(second + 1);
  }
  return "/";
}

/// Cores that the quota allows, rounded down, at least one; nothing where there is no quota.
std::optional<std::int64_t> quota_cores(std::int64_t quota, std::int64_t period) {
  if (quota <= 0 || period <= 0) return std::nullopt;
  return std::max<std::int64_t>(1, quota / period);
}

std::int64_t limit_cores(const std::string& root, const std::string& cgroup_file, std::int64_t cores) {
  for (const std::string& folder : with_parents(root + "sys/fs/cgroup", group_of(cgroup_file, ""))) {
    std::istringstream text(read_small_file(folder + "/cpu.max"));
    std::string quota;
    std::int64_t period = 0;
    if (!(text >> quota >> period)) continue;
    if (const auto limit = quota_cores(parse_integer(quota).value_or(0), period))
      cores = std::min(cores, *limit);
  }
  for (const std::string& folder : with_parents(root + "sys/fs/cgroup/cpu", group_of(cgroup_file, "cpu"))) {
    const auto quota = parse_integer(read_small_file(folder + "/cpu.cfs_quota_us"));
    const auto period = parse_integer(read_small_file(folder + "/cpu.cfs_period_us"));
    if (const auto limit = quota_cores(quota.value_or(0), period.value_or(0)))
      cores = std::min(cores, *limit);
  }
  return cores;
}

/// One version's file names for the same facts.
struct MemoryFiles {
  std::string folder;
  std::string limit;
  std::string used;
  std::string reclaimable_field;
};

void limit_memory(const MemoryFiles& files, LocalMachine& machine) {
  const auto limit = parse_integer(read_small_file(files.folder + files.limit));
  if (!limit || *limit <= 0 || *limit >= machine.memory_bytes) return;
  const std::int64_t used = parse_integer(read_small_file(files.folder + files.used)).value_or(0);
  const auto reclaimable = field(read_small_file(files.folder + "/memory.stat"), files.reclaimable_field);
  const std::int64_t busy = used - (reclaimable ? parse_integer(*reclaimable).value_or(0) : 0);
  machine.memory_bytes = *limit;
  machine.available_memory_bytes = std::min(
      machine.available_memory_bytes, std::max<std::int64_t>(0, *limit - std::max<std::int64_t>(0, busy)));
}

void limit_memory(const std::string& root, const std::string& cgroup_file, LocalMachine& machine) {
  for (const std::string& folder : with_parents(root + "sys/fs/cgroup", group_of(cgroup_file, "")))
    limit_memory({folder, "/memory.max", "/memory.current", "inactive_file"}, machine);
  for (const std::string& folder :
       with_parents(root + "sys/fs/cgroup/memory", group_of(cgroup_file, "memory")))
    limit_memory({folder, "/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_inactive_file"},
                 machine);
}

std::int64_t processors_in(const std::string& cpuinfo) {
  std::istringstream lines(cpuinfo);
  std::int64_t count = 0;
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("processor")) ++count;
  return std::max<std::int64_t>(1, count);
}

std::int64_t affinity_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 0;
}

void apply_probe(const LocalhostProbe& probe, NodeSpec& node) {
  DeviceSpec& device = node.device;
  for (const GemmRate& rate : probe.gemm_rates) device.peak_flops[rate.precision] = 0;
  for (const GemmRate& rate : probe.gemm_rates) {
    double& peak = device.peak_flops[rate.precision];
    peak = std::max(peak, rate.flops_per_second);
  }
  device.gemm_rates = probe.gemm_rates;
  device.operator_seconds = probe.operator_seconds;
  if (probe.memory_bytes_per_second > 0) {
    device.memory_bytes_per_second = probe.memory_bytes_per_second;
    node.host_memory_bytes_per_second = probe.memory_bytes_per_second * static_cast<double>(node.cpu_cores);
  }
  node.collective_rates = probe.collective_rates;
  for (const CollectiveRate& rate : probe.collective_rates) {
    if (rate.collective != MeasuredCollective::send_receive || rate.ranks != 2) continue;
    node.link_bytes_per_second = rate.bytes_per_second;
    node.link_latency_seconds = rate.latency_seconds;
  }
}

Diagnostics note(std::string message, std::string remedy = {}) {
  Diagnostic diagnostic;
  diagnostic.severity = Severity::note;
  diagnostic.message = std::move(message);
  diagnostic.remedy = std::move(remedy);
  Diagnostics notes;
  notes.add(std::move(diagnostic));
  return notes;
}

}  // namespace

LocalMachine read_local_machine(const std::string& root) {
  LocalMachine machine;
  const std::string cpuinfo = read_small_file(root + "proc/cpuinfo");
  const std::string meminfo = read_small_file(root + "proc/meminfo");
  const std::string cgroup_file = read_small_file(root + "proc/self/cgroup");

  machine.processor = field(cpuinfo, "model name").value_or("unknown");
  const std::int64_t affinity = root == "/" ? affinity_cores() : 0;
  machine.cores = limit_cores(root, cgroup_file, affinity > 0 ? affinity : processors_in(cpuinfo));
  machine.memory_bytes = kibibytes(meminfo, "MemTotal");
  machine.available_memory_bytes = kibibytes(meminfo, "MemAvailable");
  limit_memory(root, cgroup_file, machine);
  return machine;
}

Diagnostics apply_local_machine(const LocalMachine& machine, const std::optional<LocalhostProbe>& probe,
                                NodeSpec& node) {
  // Whole multiples of this, so that plans made one after the other agree in spite of small changes.
  constexpr std::int64_t memory_step = std::int64_t{64} << 20;
  node.devices = machine.cores;
  node.cpu_cores = machine.cores;
  node.host_memory_bytes = machine.memory_bytes;
  const std::int64_t share = machine.available_memory_bytes / machine.cores / memory_step * memory_step;
  node.device.memory_bytes = std::max(memory_step, share);

  if (!probe)
    return note("localhost: not measured yet, cautious default rates are used",
                "measure this machine with `dsrun --probe`");
  if (probe->processor != machine.processor)
    return note(
        fmt::format("localhost: the probe is of \"{}\", this machine is \"{}\"; cautious default rates "
                    "are used",
                    probe->processor, machine.processor),
        "measure this machine with `dsrun --probe`");
  apply_probe(*probe, node);
  return {};
}

}  // namespace specs
