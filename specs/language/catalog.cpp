#include "specs/language/catalog.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "specs/catalog/embedded_catalog.h"
#include "specs/catalog/embedded_stacks.h"
#include "specs/language/catalog_entries.h"
#include "specs/language/defaults.h"
#include "specs/language/key_reader.h"
#include "specs/language/localhost.h"
#include "specs/language/probe.h"
#include "specs/language/section_keys.h"
#include "specs/language/value_tree.h"

namespace specs {

namespace {

constexpr std::string_view localhost_name = "localhost";

/// Keys of an entry that are about it, not of the value it describes.
constexpr std::array<std::string_view, 3> keys_about_entries{"description", "source", "network"};

Value parse_embedded(const EmbeddedFile& file) {
  Result<Value> parsed = parse_toml(file.text, std::string(file.name));
  assert(parsed.ok() && "the embedded catalog is not TOML");
  return parsed ? std::move(*parsed) : Value{};
}

/// Each catalog file parsed once, when it is first needed.
const Value& parsed_file(std::string_view name) {
  static const Value nothing;
  static const std::map<std::string_view, Value> files = [] {
    std::map<std::string_view, Value> parsed;
    for (const EmbeddedFile& file : embedded_catalog()) parsed.emplace(file.name, parse_embedded(file));
    return parsed;
  }();
  const auto found = files.find(name);
  return found != files.end() ? found->second : nothing;
}

/// The stacks stand in a file each; here they are one table like the other kinds.
const Value& parsed_stacks() {
  static const Value stacks = [] {
    Value table;
    for (const EmbeddedFile& file : embedded_stacks()) {
      const std::string_view stem =
          std::string_view(file.name).substr(0, std::string_view(file.name).rfind('.'));
      table.entries.push_back({std::string(stem), {}, parse_embedded(file)});
    }
    return table;
  }();
  return stacks;
}

const Value& entries_of(CatalogKind kind) {
  switch (kind) {
    case CatalogKind::device:
      return parsed_file("devices.toml");
    case CatalogKind::node:
      return parsed_file("nodes.toml");
    case CatalogKind::network:
      return parsed_file("networks.toml");
    case CatalogKind::storage:
      return parsed_file("storage.toml");
    case CatalogKind::model:
      return parsed_file("models.toml");
    case CatalogKind::stack:
      return parsed_stacks();
  }
  return parsed_file("");
}

std::string text_of(const Value& table, std::string_view key) {
  const TableEntry* entry = table.find(key);
  return entry != nullptr ? entry->value.text : std::string();
}

/// A number of defaults.toml.
double default_number(std::string_view table, std::string_view key) {
  const TableEntry* section = parsed_file("defaults.toml").find(table);
  const TableEntry* entry = section != nullptr ? section->value.find(key) : nullptr;
  return entry != nullptr ? entry->value.number : 0;
}

template <class Spec>
Diagnostics read_entry(CatalogKind kind, const std::string& name, Spec& spec) {
  ReadState state;
  const TableEntry* entry = entries_of(kind).find(name);
  if (entry == nullptr) {
    const auto nearest = nearest_name(name, catalog_names(kind));
    state.diagnostics.error({}, fmt::format("unknown {} \"{}\"", name_of(kind), name),
                            nearest ? fmt::format("did you mean \"{}\"?", *nearest) : std::string());
    return state.diagnostics;
  }
  Value table = entry->value;
  std::erase_if(table.entries, [](const TableEntry& child) {
    return std::find(keys_about_entries.begin(), keys_about_entries.end(), child.key) !=
           keys_about_entries.end();
  });
  spec = Spec{};
  if constexpr (std::is_same_v<Spec, ModelSpec>) spec = starting_model();
  spec.name = name;
  KeyReader reader(table, name, state);
  visit_keys(reader, spec);
  reader.refuse_unknown_keys();
  return state.diagnostics;
}

template <class Spec>
Result<Spec> loaded(std::string_view name) {
  Result<Spec> result;
  Spec spec;
  result.diagnostics = load_entry(std::string(name), spec);
  if (!result.diagnostics.has_errors()) result.value = std::move(spec);
  return result;
}

/// The probe of this machine; nothing where there is none, a warning where it cannot be read.
std::optional<LocalhostProbe> read_default_probe(Diagnostics& notes) {
  const std::filesystem::path path = default_probe_path();
  std::error_code ignored;
  if (path.empty() || !std::filesystem::exists(path, ignored)) return std::nullopt;
  Result<LocalhostProbe> probe = read_probe(path);
  if (probe) return std::move(*probe);
  const Diagnostic& first = probe.diagnostics.entries().front();
  notes.warning({}, fmt::format("{}:{}: {}", first.position.file, first.position.line, first.message),
                "measure again with `dsrun --probe`, or delete the file");
  return std::nullopt;
}

}  // namespace

std::vector<std::string> catalog_names(CatalogKind kind) {
  std::vector<std::string> names;
  for (const TableEntry& entry : entries_of(kind).entries) names.push_back(entry.key);
  return names;
}

std::vector<CatalogEntry> catalog_entries(CatalogKind kind) {
  std::vector<CatalogEntry> entries;
  for (const TableEntry& entry : entries_of(kind).entries)
    entries.push_back({entry.key, text_of(entry.value, "description"), text_of(entry.value, "source")});
  return entries;
}

Diagnostics load_entry(const std::string& name, DeviceSpec& device) {
  return read_entry(CatalogKind::device, name, device);
}

Diagnostics load_entry(const std::string& name, NodeSpec& node) {
  Diagnostics diagnostics = read_entry(CatalogKind::node, name, node);
  if (name != localhost_name || diagnostics.has_errors()) return diagnostics;
  const std::optional<LocalhostProbe> probe = read_default_probe(diagnostics);
  diagnostics.append(apply_local_machine(read_local_machine(), probe, node));
  return diagnostics;
}

Diagnostics load_entry(const std::string& name, NetworkSpec& network) {
  return read_entry(CatalogKind::network, name, network);
}

Diagnostics load_entry(const std::string& name, StorageSpec& storage) {
  return read_entry(CatalogKind::storage, name, storage);
}

Diagnostics load_entry(const std::string& name, ModelSpec& model) {
  return read_entry(CatalogKind::model, name, model);
}

void fill_in_nodes_and_network(ClusterSpec& cluster) {
  for (ClusterGroup& group : cluster.groups)
    if (group.node == NodeSpec{}) load_entry(std::string(localhost_name), group.node);

  const std::string& first_node = cluster.groups.front().node.name;
  const TableEntry* entry = entries_of(CatalogKind::node).find(first_node);
  const std::string network = entry != nullptr ? text_of(entry->value, "network") : std::string();
  if (!network.empty()) load_entry(network, cluster.network);
  load_entry("nvme", cluster.storage);

  const bool local = first_node == localhost_name;
  cluster.failures_per_node_hour = local ? 0 : default_number("failures", "per_node_hour");
  cluster.restart_seconds = local ? 0 : default_number("restart", "seconds");
  cluster.electricity_dollars_per_kwh = default_number("electricity", "dollars_per_kwh");
}

Result<DeviceSpec> catalog_device(std::string_view name) { return loaded<DeviceSpec>(name); }
Result<NodeSpec> catalog_node(std::string_view name) { return loaded<NodeSpec>(name); }
Result<NetworkSpec> catalog_network(std::string_view name) { return loaded<NetworkSpec>(name); }
Result<StorageSpec> catalog_storage(std::string_view name) { return loaded<StorageSpec>(name); }

Result<ModelSpec> catalog_model(std::string_view name) {
  Result<ModelSpec> model = loaded<ModelSpec>(name);
  if (model) fill_in(*model);
  return model;
}

Result<StackSpec> catalog_stack(std::string_view name) {
  Result<StackSpec> result;
  StackSpec stack;
  result.diagnostics = read_entry(CatalogKind::stack, std::string(name), stack);
  if (result.diagnostics.has_errors()) return result;
  if (const TableEntry* entry = parsed_stacks().find(name)) stack.source = text_of(entry->value, "source");
  result.value = std::move(stack);
  return result;
}

Result<StackSpec> stack_of(const TrainingSpec& training) {
  Result<StackSpec> stack = catalog_stack(training.stack);
  if (!stack) return stack;
  const auto has = [&training](std::string_view feature) {
    return std::find(training.stack_features.begin(), training.stack_features.end(), feature) !=
           training.stack_features.end();
  };
  if (has("module_tensor_degrees")) stack->module_tensor_degrees = true;
  if (has("fine_grained_offload")) stack->activation_offload_with_pipeline = true;
  if (has("cuts_inside_layers")) stack->uneven_stages = stack->cuts_inside_layers = true;
  auto& modes = stack->output_modes;
  constexpr OutputLayerMode shared = OutputLayerMode::token_parallel;
  if (has("token_parallel_output") && std::find(modes.begin(), modes.end(), shared) == modes.end())
    modes.push_back(shared);
  return stack;
}

}  // namespace specs
