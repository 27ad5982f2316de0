// The catalog that is compiled into the programs: devices, nodes, networks, storage, models, software stacks.
//
// Every entry carries its source. An unknown name is an error that names the nearest known one.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "specs/diagnostics/diagnostic.h"
#include "specs/diagnostics/enum_names.h"
#include "specs/language/cluster.h"
#include "specs/language/model.h"
#include "specs/language/stack.h"

namespace specs {

enum class CatalogKind : std::uint8_t { device, node, network, storage, model, stack };

template <>
struct EnumNames<CatalogKind> {
  static constexpr std::array<std::pair<CatalogKind, std::string_view>, 6> names{{
      {CatalogKind::device, "device"},
      {CatalogKind::node, "node"},
      {CatalogKind::network, "network"},
      {CatalogKind::storage, "storage"},
      {CatalogKind::model, "model"},
      {CatalogKind::stack, "stack"},
  }};
};

/// All names of a kind, in the order of the catalog's files.
std::vector<std::string> catalog_names(CatalogKind kind);

/// One line: what the entry is and where its figures come from.
struct CatalogEntry {
  std::string name;
  std::string description;
  std::string source;
  bool operator==(const CatalogEntry&) const = default;
};
std::vector<CatalogEntry> catalog_entries(CatalogKind kind);

Result<DeviceSpec> catalog_device(std::string_view name);
/// `localhost` is this machine: one device a core, rates of the probe file where there is one.
Result<NodeSpec> catalog_node(std::string_view name);
Result<NetworkSpec> catalog_network(std::string_view name);
Result<StorageSpec> catalog_storage(std::string_view name);
/// The model with all defaults filled in.
Result<ModelSpec> catalog_model(std::string_view name);
Result<StackSpec> catalog_stack(std::string_view name);
/// The recipe's stack with what its `stack_features` say that a build of it can do beyond the profile:
/// "module_tensor_degrees", "token_parallel_output", "cuts_inside_layers", "fine_grained_offload".
Result<StackSpec> stack_of(const TrainingSpec& training);

}  // namespace specs
