// Exact count of CPU tensor bytes: an allocator over LibTorch's own that every tensor goes through.
//
// Counted are the bytes asked for by tensors of any thread of the process; not counted are scratch buffers of
// the math libraries, of the matrix kernels, and of Gloo, which allocate for themselves.
#pragma once

#include <array>
#include <cstdint>

#include "specs/plan/cost_breakdown.h"

namespace c10 {
class DataPtr;
}

namespace runtime {

inline constexpr std::size_t memory_classes = specs::EnumNames<specs::MemoryClass>::names.size();

/// Of one kind of memory.
struct MemoryCount {
  std::int64_t current_bytes = 0;
  std::int64_t peak_bytes = 0;  ///< since the last reset
  /// By class, at the moment of the peak.
  std::array<std::int64_t, memory_classes> bytes_at_peak{};
  std::array<std::int64_t, memory_classes> current_bytes_of{};
  /// The most of each class since the last reset, whenever that was.
  std::array<std::int64_t, memory_classes> peak_bytes_of{};

  std::int64_t at_peak(specs::MemoryClass memory_class) const {
    return bytes_at_peak[static_cast<std::size_t>(memory_class)];
  }
  std::int64_t current_of(specs::MemoryClass memory_class) const {
    return current_bytes_of[static_cast<std::size_t>(memory_class)];
  }
  std::int64_t peak_of(specs::MemoryClass memory_class) const {
    return peak_bytes_of[static_cast<std::size_t>(memory_class)];
  }
};

/// The device's memory, and beside it what was allocated under a HostMemoryScope; each has its own peak.
struct TensorMemory : MemoryCount {
  MemoryCount host;
  std::int64_t allocations = 0;
};

/// Call before the first tensor; later calls do nothing. Keeps freed memory for later tensors instead of
/// giving it back to the system, and asks for huge pages for large ones.
void install_counting_allocator();

TensorMemory tensor_memory();

/// Gives the memory of a storage another class from here on, where it is counted.
void retag(const c10::DataPtr& memory, specs::MemoryClass memory_class);

/// The peaks count anew from what is allocated now.
void reset_peak_tensor_memory();

}  // namespace runtime
