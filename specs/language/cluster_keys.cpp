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
    visitor.quantity({name, "dense peak; absent: not supported", {}, true}, rate, Unit::flops_per_second,
                     positive);
    if (rate > 0) peak_flops[precision] = rate;
  }
}

void visit_group(KeyVisitor& visitor, ClusterGroup& group) {
  visitor.named_table({"node", "a node of the catalog, or written out", "localhost"},
                      named(CatalogKind::node, group.node),
                      [&group](KeyVisitor& keys) { visit_keys(keys, group.node); });
  visitor.integer({"nodes", "nodes of this kind"}, group.nodes, {1, most_nodes});
}

}  // namespace

void visit_keys(KeyVisitor& visitor, DeviceSpec& device) {
  visitor.text({"name", "what tables call it", "the preset's name"}, device.name);
  visitor.one_of({"generation", "which efficiency constants apply"}, device.generation,
                 {"", "volta", "turing", "ampere", "ada", "hopper", "blackwell", "cpu"});
  visitor.bytes({"memory", "of one device"}, device.memory_bytes, {1, largest_memory});
  visitor.quantity({"memory_bandwidth", "read or written"}, device.memory_bytes_per_second,
                   Unit::bytes_per_second, positive);
  visitor.table({"peak_flops", "dense peak rate of each precision it supports"},
                [&device](KeyVisitor& keys) { visit_peak_flops(keys, device.peak_flops); });
  visitor.integer({"multiprocessors", "for wave quantization; 0: has no meaning"}, device.multiprocessors,
                  {0, 1'000'000});
  visitor.quantity({"power", "at full load"}, device.power_watts, Unit::watts, {0, 1e6});
  visitor.quantity({"host_link_bandwidth", "PCIe or C2C, one direction"}, device.host_link_bytes_per_second,
                   Unit::bytes_per_second, {});
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
  visitor.quantity({"link_bandwidth", "of one device to its peers, one direction"},
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
  visitor.number({"price_per_hour", "US dollars, of the whole node; 0: not known"}, node.price_per_hour,
                 {0, 1e6});
  visitor.text({"price_date", "of the price"}, node.price_date);
}

void visit_keys(KeyVisitor& visitor, NetworkSpec& network) {
  visitor.text({"name", "what tables call it", "the preset's name"}, network.name);
  visitor.choice({"kind", "of the network"}, network.kind);
  visitor.quantity({"node_bandwidth", "all cards of a node together, one direction"},
                   network.node_bytes_per_second, Unit::bytes_per_second, {});
  visitor.quantity({"latency", "of one message"}, network.latency_seconds, Unit::seconds, {0, 1});
  visitor.integer({"pod_nodes", "nodes under one non-blocking level; 0: all"}, network.pod_nodes,
                  {0, most_nodes});
  visitor.number({"oversubscription", "above a pod"}, network.oversubscription, {1, 1000});
}

void visit_keys(KeyVisitor& visitor, StorageSpec& storage) {
  visitor.text({"name", "what tables call it", "the preset's name"}, storage.name);
  visitor.quantity({"write_bandwidth", "of the whole job", "nvme: all nodes' drives"},
                   storage.write_bytes_per_second, Unit::bytes_per_second, positive);
  visitor.quantity({"read_bandwidth", "of the whole job", "nvme: all nodes' drives"},
                   storage.read_bytes_per_second, Unit::bytes_per_second, positive);
}

void visit_keys(KeyVisitor& visitor, ClusterSpec& cluster) {
  // One group is written in [cluster] itself, several as [[cluster.group]].
  if (visitor.reads() || cluster.groups.size() == 1) {
    if (visitor.reads()) cluster.groups.assign(1, ClusterGroup{});
    visit_group(visitor, cluster.groups.front());
  }
  std::vector<ClusterGroup> groups;
  if (cluster.groups.size() > 1) groups = cluster.groups;
  visitor.list_of_tables({"group", "mixed clusters: one [[cluster.group]] for each kind of node", {}, true},
                         groups, [](KeyVisitor& keys, ClusterGroup& group) { visit_group(keys, group); });
  if (visitor.reads() && !groups.empty()) cluster.groups = std::move(groups);

  if (visitor.reads()) fill_in_nodes_and_network(cluster);
  visitor.named_table({"network", "a network of the catalog, or written out", "the node's usual one"},
                      named(CatalogKind::network, cluster.network),
                      [&cluster](KeyVisitor& keys) { visit_keys(keys, cluster.network); });
  visitor.named_table({"storage", "where checkpoints go: nvme, nfs, lustre, or written out", "nvme"},
                      named(CatalogKind::storage, cluster.storage),
                      [&cluster](KeyVisitor& keys) { visit_keys(keys, cluster.storage); });
  visitor.number({"node_failures_per_hour", "of one node", "1.6e-4; localhost: 0"},
                 cluster.node_failures_per_hour, {0, 1});
  visitor.number({"electricity_price_per_kwh", "US dollars", "0.08"}, cluster.electricity_price_per_kwh,
                 {0, 100});
}

}  // namespace specs
