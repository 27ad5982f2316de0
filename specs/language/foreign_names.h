// What other tools call the keys of the experiment language, for suggestions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace specs {

/// "vocab_size" → "vocabulary", where that is among `known`; empty where nothing is known.
std::string known_name_of(std::string_view foreign, const std::vector<std::string>& known);

}  // namespace specs
