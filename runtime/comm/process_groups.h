// The process groups of one rank, made once per ordered rank set, and the communicators over them.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/comm/communicator.h"
#include "runtime/comm/rendezvous.h"

namespace runtime {

enum class DeviceKind : std::uint8_t { cpu, cuda };

struct CommunicationOptions {
  DeviceKind device = DeviceKind::cpu;        ///< Gloo on cpu, NCCL on cuda
  std::chrono::milliseconds timeout{600000};  ///< of each operation
  std::string network_interface;  ///< empty: GLOO_SOCKET_IFNAME, else the loopback or host address
};

class BackendFactory;

/// Making a group blocks until all its members make it: members must ask for their groups in one global
/// order. A second request for the same ranks is answered from the cache, so a pool of processes can build
/// hundreds of meshes.
class ProcessGroups {
 public:
  ProcessGroups(Rendezvous rendezvous, std::int64_t rank, CommunicationOptions options);
  ~ProcessGroups();
  ProcessGroups(const ProcessGroups&) = delete;
  ProcessGroups& operator=(const ProcessGroups&) = delete;

  std::int64_t rank() const { return rank_; }
  const CommunicationOptions& options() const { return options_; }
  Traffic& traffic() { return *traffic_; }
  std::size_t cached() const { return groups_.size(); }

  /// `ranks` (global, in group order) must contain this rank.
  Communicator communicator(std::string label, const std::vector<std::int64_t>& ranks);

 private:
  Rendezvous rendezvous_;
  std::int64_t rank_;
  CommunicationOptions options_;
  std::shared_ptr<Traffic> traffic_;
  std::shared_ptr<BackendFactory> factory_;
  std::map<std::vector<std::int64_t>, std::shared_ptr<ProcessGroup>> groups_;
};

}  // namespace runtime
