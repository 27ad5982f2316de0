// Products of bf16 matrices on the matrix registers of x86 processors (AMX), summed in fp32.
//
// A product goes through one operand in strips of rows or columns. A strip is packed once, as the registers
// want it; blocks of the other operand pass along it, packed panel by panel into the first-level cache. The
// order in which a sum is added up depends on the depth alone: neither on the other two sizes nor on the
// number of threads.
#pragma once

#include <cstdint>

#include <c10/util/BFloat16.h>

namespace runtime::kernels {

struct TileOperand {
  const c10::BFloat16* data = nullptr;
  std::int64_t row_stride = 0;  ///< elements; those of a row lie side by side
  /// False: each row holds what is summed over for one row (of the left) or column (of the right) of the
  /// result. True: the rows are what is summed over.
  bool rows_are_depth = false;
};

struct TileSizes {
  std::int64_t rows = 0, columns = 0, depth = 0;
};

/// Where the result goes: rounded to bf16 after `bias` [columns] is added, or onto the sums that are there.
struct TileResult {
  c10::BFloat16* rounded = nullptr;
  const c10::BFloat16* bias = nullptr;  ///< may be null
  float* sum = nullptr;                 ///< in place of `rounded`
  std::int64_t row_stride = 0;
};

/// True where processor and system have the registers.
bool has_tiles();

/// Requires has_tiles() and sizes of 1 or more. Scratch: 1 KiB for each element of depth, and 1 MiB for
/// each thread.
void multiply_tiles(const TileOperand& left, const TileOperand& right, const TileSizes& sizes,
                    const TileResult& result);

}  // namespace runtime::kernels
