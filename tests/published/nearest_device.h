// The catalog's device for a name that the catalog does not have.
#pragma once

#include <string>
#include <string_view>

namespace published {

/// The device of a node of the catalog whose model ("h100") is part of `name` and that shares the most other
/// parts with it, the SXM one where several do; empty where there is none.
std::string nearest_device(std::string_view name);

}  // namespace published
