// The vector instructions that the optimizers' kernels are compiled for; chosen when the program runs.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "specs/diagnostics/enum_names.h"

namespace runtime {

enum class InstructionSet : std::uint8_t {
  portable,  ///< what every processor of the architecture has
  avx2,
  avx512,
};

/// Those that this processor has, the widest last.
const std::vector<InstructionSet>& instruction_sets();

}  // namespace runtime

template <>
struct specs::EnumNames<runtime::InstructionSet> {
  static constexpr std::array<std::pair<runtime::InstructionSet, std::string_view>, 3> names{{
      {runtime::InstructionSet::portable, "portable"},
      {runtime::InstructionSet::avx2, "avx2"},
      {runtime::InstructionSet::avx512, "avx512"},
  }};
};
