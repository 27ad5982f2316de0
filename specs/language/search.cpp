#include "specs/language/search.h"

#include <algorithm>

#include <fmt/format.h>

namespace specs {
namespace {

std::vector<OffloadOption> all_options() {
  std::vector<OffloadOption> options{OffloadDevice::none};
  for (const OffloadDevice device : {OffloadDevice::cpu, OffloadDevice::nvme})
    for (std::int64_t eighths = 0; eighths <= 8; ++eighths) options.emplace_back(device, eighths);
  return options;
}

}  // namespace

std::string to_string(const OffloadOption& option) {
  if (option.eighths == 0) return std::string(name_of(option.device));
  return fmt::format("{}/{}", name_of(option.device), option.eighths);
}

std::optional<OffloadOption> offload_option_from(std::string_view text) {
  for (const OffloadOption& option : all_options())
    if (to_string(option) == text) return option;
  return std::nullopt;
}

std::vector<std::string> offload_option_names() {
  std::vector<std::string> names;
  for (const OffloadOption& option : all_options()) names.push_back(to_string(option));
  return names;
}

bool allows(const std::vector<OffloadOption>& options, OffloadDevice device, std::int64_t eighths) {
  return options.empty() || std::any_of(options.begin(), options.end(), [&](const OffloadOption& option) {
           return option.device == device && (option.eighths == 0 || option.eighths == eighths);
         });
}

}  // namespace specs
