// The machines: devices, nodes, the network between them and the storage behind them. All constants are
// the catalog's or the user's; bandwidths are bytes per second in one direction.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "specs/diagnostics/enum_names.h"
#include "specs/language/measured_rates.h"
#include "specs/language/vocabulary.h"

namespace specs {

struct DeviceSpec {
  std::string name;
  std::string generation;  ///< "volta", "ampere", "hopper", "blackwell", "ada", "cpu": which constants apply
  std::int64_t memory_bytes = 0;
  double memory_bytes_per_second = 0;
  std::map<Precision, double> peak_flops;  ///< dense, per second; a precision that is absent is not supported
  std::int64_t multiprocessors = 0;        ///< 0 where wave quantization has no meaning (CPU)
  double power_watts = 0;
  double host_link_bytes_per_second = 0;     ///< PCIe or C2C
  std::map<std::string, double> efficiency;  ///< by name, the constants of the cost model that differ here
  double operator_seconds = 0;               ///< measured fixed cost of one operator; 0: not measured
  std::vector<GemmRate> gemm_rates;          ///< measured; empty: not measured
  bool operator==(const DeviceSpec&) const = default;
};

struct NodeSpec {
  std::string name;
  DeviceSpec device;
  std::int64_t devices = 1;          ///< per node
  std::string link;                  ///< "nvlink", "pcie", "memory"
  double link_bytes_per_second = 0;  ///< of one device to its peers in the node
  double link_latency_seconds = 0;
  std::int64_t link_domain_devices =
      0;                           ///< devices that `link` reaches; may exceed the node (GB200); 0: the node
  std::int64_t network_cards = 0;  ///< per node; 0: one per device
  std::int64_t cpu_cores = 0;
  std::int64_t host_memory_bytes = 0;
  double host_memory_bytes_per_second = 0;
  std::int64_t nvme_bytes = 0;
  double nvme_read_bytes_per_second = 0;
  double nvme_write_bytes_per_second = 0;
  std::vector<CollectiveRate> collective_rates;  ///< measured inside the node; empty: not measured
  double power_watts = 0;                        ///< beside the devices
  double idle_power_watts = 0;                   ///< of the whole node where a job leaves it unused
  double price_per_hour_dollars = 0;             ///< of the whole node
  std::string price_date;
  bool operator==(const NodeSpec&) const = default;
};

enum class NetworkKind : std::uint8_t { none, infiniband, roce, ethernet, efa, loopback };

template <>
struct EnumNames<NetworkKind> {
  static constexpr std::array<std::pair<NetworkKind, std::string_view>, 6> names{{
      {NetworkKind::none, "none"},
      {NetworkKind::infiniband, "infiniband"},
      {NetworkKind::roce, "roce"},
      {NetworkKind::ethernet, "ethernet"},
      {NetworkKind::efa, "efa"},
      {NetworkKind::loopback, "loopback"},
  }};
};

/// One level of switches, from the leaves up.
struct NetworkLevel {
  std::int64_t nodes = 0;       ///< nodes under one switch group of this level; 0: all
  double oversubscription = 1;  ///< of the links by which what is below reaches this level
  double latency_seconds = 0;   ///< added by crossing this level
  bool operator==(const NetworkLevel&) const = default;
};

struct NetworkSpec {
  std::string name;
  NetworkKind kind = NetworkKind::none;
  double node_bytes_per_second = 0;  ///< all cards of a node together
  double latency_seconds = 0;
  bool rdma = false;
  bool rail_optimized = false;       ///< device i of every node hangs on the same leaf
  std::vector<NetworkLevel> levels;  ///< empty: one non-blocking level
  bool operator==(const NetworkSpec&) const = default;
};

struct StorageSpec {
  std::string name;                   ///< "nvme", "nfs", "lustre"
  bool local = false;                 ///< each node writes to its own disk
  double write_bytes_per_second = 0;  ///< of the whole job; 0 where only the node's rate binds
  double read_bytes_per_second = 0;
  double node_write_bytes_per_second = 0;  ///< of one node
  double node_read_bytes_per_second = 0;
  std::int64_t capacity_bytes = 0;  ///< 0: unknown
  bool operator==(const StorageSpec&) const = default;
};

/// Nodes of one kind. Most clusters have one group.
struct ClusterGroup {
  NodeSpec node;
  std::int64_t nodes = 1;
  std::optional<NetworkSpec> network;  ///< inside the group, where it differs from the cluster's
  std::int64_t devices() const { return nodes * node.devices; }
  bool operator==(const ClusterGroup&) const = default;
};

struct ClusterSpec {
  std::vector<ClusterGroup> groups;
  NetworkSpec network;
  StorageSpec storage;
  double failures_per_node_hour = 0;
  double restart_seconds = 0;  ///< from a failure to the first new step, checkpoint read excluded
  double electricity_dollars_per_kwh = 0;
  std::int64_t devices() const {
    std::int64_t total = 0;
    for (const ClusterGroup& group : groups) total += group.devices();
    return total;
  }
  bool operator==(const ClusterSpec&) const = default;
};

}  // namespace specs
