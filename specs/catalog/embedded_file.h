// A text file of the source tree that is compiled into the programs.
#pragma once

#include <string_view>

namespace specs {

struct EmbeddedFile {
  std::string_view name;  ///< without folder, as in the source tree
  std::string_view text;
};

}  // namespace specs
