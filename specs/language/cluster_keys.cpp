#include <map>
#include <string>
#include <utility>
#include <vector>

#include "specs/language/catalog.h"
#include "specs/language/catalog_entries.h"
#include "specs/language/rate_keys.h"
#include "specs/language/section_keys.h"

namespace specs {

namespace {

constexpr std::int64_t most_devices_per_node = 1024;
constexpr std::int64_t most_nodes = 1'000'000;
constexpr std::int64_t largest_memory = std::int64_t{1} << 50;
constexpr std::int64_t largest_storage = std::int64_t{1} << 60;

template <class Spec>
NamedEntries named(CatalogKind kind, Spec& spec) {
  return {name_of(kind), catalog_names(kind),
          [&spec](const std::string& name) { return load_entry(name, spec); }};
}

/// A key per precision; 0, which cannot be written, means that the device does not compute in it.
void visit_peak_flops(KeyVisitor& visitor, std::map<Precision, double>& peak_flops) {
  for (const auto& [precision, name] : EnumNames<Precision>::names) {
    const auto known = peak_flops.find(precision);
    double rate = known != peak_flops.end() ? known->second : 0;
    visitor.quantity({name, "dense peak", "not supported", true}, rate, Unit::flops_per_second, positive);
    if (rate > 0) peak_flops[precision] = rate;
  }
}

void visit_group(KeyVisitor& visitor, ClusterGroup& group) {
  visitor.named_table({"node", "a node of the catalog, or written out", "localhost"},
                      named(CatalogKind::node, group.node),
                      [&group](KeyVisitor& keys) { visit_keys(keys, group.node); });
  visitor.integer({"nodes", "nodes of this kind"}, group.nodes, {1, most_nodes});
}

/// A group of a mixed cluster may have a network of its own.
void visit_listed_group(KeyVisitor& visitor, ClusterGroup& group) {
  visit_group(visitor, group);
  bool given = group.network.has_value();
  NetworkSpec network = group.network.value_or(NetworkSpec{});
  visitor.optional_named_table({"network", "inside the group, where it differs from the cluster's"}, given,
                               named(CatalogKind::network, network),
                               [&network](KeyVisitor& keys) { visit_keys(keys, network); });
  if (given) group.network = std::move(network);
}

void visit_level(KeyVisitor& visitor, NetworkLevel& level) {
  visitor.integer({"nodes", "under one switch group of this level; 0: all"}, level.nodes, {0, most_nodes});
  visitor.number({"oversubscription", "of the links by which the level below reaches this one"},
                 level.oversubscription, {1, 1000});
  visitor.quantity({"latency", "added by crossing this level"}, level.latency_seconds, Unit::seconds, {0, 1});
}

bool usually_rdma(NetworkKind kind) {
  return kind == NetworkKind::infiniband || kind == NetworkKind::roce || kind == NetworkKind::efa;
}

}  // namespace

void visit_keys(KeyVisitor& visitor, DeviceSpec& device) {
  visitor.text({"name", "what tables call it", "the preset's name"}, device.name);
  visitor.one_of({"generation", "which efficiency constants apply"}, device.generation,
                 {"", "volta", "ampere", "ada", "hopper", "blackwell", "cpu"});
  visitor.bytes({"memory", "of one device", "needed without a preset"}, device.memory_bytes,
                {1, largest_memory});
  visitor.quantity({"memory_bandwidth", "read or written", "needed without a preset"},
                   device.memory_bytes_per_second, Unit::bytes_per_second, positive);
  visitor.table({"peak_flops", "dense peak rate of each precision it supports"},
                [&device](KeyVisitor& keys) { visit_peak_flops(keys, device.peak_flops); });
  visitor.integer({"multiprocessors", "for wave quantization; 0: has no meaning"}, device.multiprocessors,
                  {0, 1'000'000});
  visitor.quantity({"power", "at full load"}, device.power_watts, Unit::watts, {0, 1e6});
  visitor.quantity({"host_link_bandwidth", "PCIe or C2C, one direction"}, device.host_link_bytes_per_second,
                   Unit::bytes_per_second, {});
  visitor.number_map({"efficiency", "constants of the cost model, where measured or overridden", {}, true},
                     device.efficiency, {});
  visitor.quantity({"operator_time", "measured fixed cost of one operator; 0: not measured"},
                   device.operator_seconds, Unit::seconds, {0, 1});
  visit_gemm_rates(visitor, device.gemm_rates);
}

void visit_keys(KeyVisitor& visitor, NodeSpec& node) {
  visitor.text({"name", "what tables call it", "the preset's name"}, node.name);
  visitor.named_table({"device", "a device of the catalog, or written out"},
                      named(CatalogKind::device, node.device),
                      [&node](KeyVisitor& keys) { visit_keys(keys, node.device); });
  visitor.integer({"devices", "per node"}, node.devices, {1, most_devices_per_node});
  visitor.one_of({"link", "between the devices of a node"}, node.link, {"", "nvlink", "pcie", "memory"});
  visitor.quantity(
      {"link_bandwidth", "of one device to its peers, one direction", "needed for several devices"},
      node.link_bytes_per_second, Unit::bytes_per_second, positive);
  visitor.quantity({"link_latency", "of one message"}, node.link_latency_seconds, Unit::seconds, {0, 1});
  visitor.integer({"link_domain_devices", "devices the link reaches; may exceed the node; 0: the node"},
                  node.link_domain_devices, {0, 1'000'000});
  visitor.integer({"network_cards", "per node; 0: one per device"}, node.network_cards, {0, 1024});
  visitor.integer({"cpu_cores", "of the node"}, node.cpu_cores, {0, 1'000'000});
  visitor.bytes({"host_memory", "of the node"}, node.host_memory_bytes, {0, largest_memory});
  visitor.quantity({"host_memory_bandwidth", "of the node"}, node.host_memory_bytes_per_second,
                   Unit::bytes_per_second, {});
  visitor.bytes({"nvme_capacity", "of the node"}, node.nvme_bytes, {0, largest_memory});
  visitor.quantity({"nvme_read", "of the node"}, node.nvme_read_bytes_per_second, Unit::bytes_per_second, {});
  visitor.quantity({"nvme_write", "of the node"}, node.nvme_write_bytes_per_second, Unit::bytes_per_second,
                   {});
  visit_collective_rates(visitor, node.collective_rates);
  visitor.quantity({"power", "beside the devices"}, node.power_watts, Unit::watts, {0, 1e6});
  visitor.quantity({"idle_power", "of the whole node where a job leaves it unused", {}, true},
                   node.idle_power_watts, Unit::watts, {0, 1e6});
  visitor.number({"price_per_hour", "US dollars, of the whole node; 0: not known"},
                 node.price_per_hour_dollars, {0, 1e6});
  visitor.text({"price_date", "of the price"}, node.price_date);
}

void visit_keys(KeyVisitor& visitor, NetworkSpec& network) {
  visitor.text({"name", "what tables call it", "the preset's name"}, network.name);
  const NetworkKind before = network.kind;
  visitor.choice({"kind", "of the network"}, network.kind);
  if (visitor.reads() && network.kind != before) network.rdma = usually_rdma(network.kind);
  visitor.quantity({"node_bandwidth", "all cards of a node together, one direction"},
                   network.node_bytes_per_second, Unit::bytes_per_second, {});
  visitor.quantity({"latency", "of one message"}, network.latency_seconds, Unit::seconds, {0, 1});
  visitor.flag({"rdma", "cards read and write memory by themselves", "true but for ethernet"}, network.rdma);
  visitor.flag({"rail_optimized", "device i of every node hangs on the same leaf"}, network.rail_optimized);
  visitor.list_of_tables(
      {"levels", "of switches, from the leaves up; none: one non-blocking level", {}, true}, network.levels,
      [](KeyVisitor& keys, NetworkLevel& level) { visit_level(keys, level); });
}

void visit_keys(KeyVisitor& visitor, StorageSpec& storage) {
  visitor.text({"name", "what tables call it", "the preset's name"}, storage.name);
  visitor.flag({"local", "each node writes to its own disk"}, storage.local);
  visitor.quantity({"write_bandwidth", "of the whole job; 0: only the node's rate binds"},
                   storage.write_bytes_per_second, Unit::bytes_per_second, {});
  visitor.quantity({"read_bandwidth", "of the whole job; 0: only the node's rate binds"},
                   storage.read_bytes_per_second, Unit::bytes_per_second, {});
  visitor.quantity(
      {"node_write_bandwidth", "of one node; 0: only the job's rate binds", "local: the node's nvme_write"},
      storage.node_write_bytes_per_second, Unit::bytes_per_second, {});
  visitor.quantity(
      {"node_read_bandwidth", "of one node; 0: only the job's rate binds", "local: the node's nvme_read"},
      storage.node_read_bytes_per_second, Unit::bytes_per_second, {});
  visitor.bytes({"capacity", "0: unknown", "local: all nodes' nvme_capacity"}, storage.capacity_bytes,
                {0, largest_storage});
}

void visit_keys(KeyVisitor& visitor, ClusterSpec& cluster) {
  // One group is written in [cluster] itself, several as [[cluster.group]].
  if (visitor.reads()) cluster.groups.assign(1, ClusterGroup{});
  const bool listed =
      cluster.groups.size() > 1 || (cluster.groups.size() == 1 && cluster.groups.front().network.has_value());
  if (!listed && !cluster.groups.empty()) visit_group(visitor, cluster.groups.front());
  std::vector<ClusterGroup> groups;
  if (listed) groups = cluster.groups;
  visitor.list_of_tables({"group", "mixed clusters: one [[cluster.group]] for each kind of node", {}, true},
                         groups,
                         [](KeyVisitor& keys, ClusterGroup& group) { visit_listed_group(keys, group); });
  if (!groups.empty()) cluster.groups = std::move(groups);

  if (visitor.reads()) fill_in_nodes_and_network(cluster);
  visitor.named_table({"network", "a network of the catalog, or written out", "the node's usual one"},
                      named(CatalogKind::network, cluster.network),
                      [&cluster](KeyVisitor& keys) { visit_keys(keys, cluster.network); });
  visitor.named_table({"storage", "where checkpoints go: nvme, nfs, lustre, or written out", "nvme"},
                      named(CatalogKind::storage, cluster.storage),
                      [&cluster](KeyVisitor& keys) { visit_keys(keys, cluster.storage); });
  visitor.number({"failures_per_node_hour", "interruptions", "1.58e-4; localhost: 0"},
                 cluster.failures_per_node_hour, {0, 1});
  visitor.quantity({"restart_time", "from a failure to the first new step, checkpoint read excluded",
                    "600 s; localhost: 0"},
                   cluster.restart_seconds, Unit::seconds, {0, 1e7});
  visitor.number({"electricity_price", "US dollars per kWh", "0.0804"}, cluster.electricity_dollars_per_kwh,
                 {0, 100});
}

}  // namespace specs
