#include "runtime/kernels/tile_product.h"

#include <algorithm>

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>

#include "runtime/kernels/tile_registers.h"

#ifdef DSPLAN_TILES
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace runtime::kernels {

#ifdef DSPLAN_TILES

namespace {

using namespace tiles;

// Strip and block of rows: their sums and the part of the strip that a pass over the rows needs stay in a
// second-level cache of 1 MiB, one panel of the left in the first-level cache.
constexpr std::int64_t strip_columns = 512, block_rows = 256, pass_depth = 256;

/// Hands on up to 32 columns of one row.
DSPLAN_TILE_INLINE void hand_on(const float* sums, std::int64_t row, std::int64_t column, __mmask32 mask,
                                const TileResult& result) {
  __m512 low = _mm512_loadu_ps(sums), high = _mm512_loadu_ps(sums + register_floats);
  const __mmask16 low_mask = static_cast<__mmask16>(mask), high_mask = static_cast<__mmask16>(mask >> 16);
  if (result.sum == nullptr) {
    if (result.bias != nullptr) {
      low = _mm512_add_ps(low, widened(result.bias + column, low_mask));
      high = _mm512_add_ps(high, widened(result.bias + column + 16, high_mask));
    }
    _mm512_mask_storeu_epi16(result.rounded + row * result.row_stride + column, mask,
                             (__m512i)_mm512_cvtne2ps_pbh(high, low));
    return;
  }
  float* const out = result.sum + row * result.row_stride + column;
  _mm512_mask_storeu_ps(out, low_mask, _mm512_add_ps(low, _mm512_maskz_loadu_ps(low_mask, out)));
  _mm512_mask_storeu_ps(out + 16, high_mask, _mm512_add_ps(high, _mm512_maskz_loadu_ps(high_mask, out + 16)));
}

/// A strip of columns, packed: for each pass over the depth its panels.
struct Strip {
  const char* data = nullptr;
  std::int64_t first_column = 0, columns = 0;
  std::int64_t panels() const { return round_up(columns, panel) / panel; }
  const char* pass(std::int64_t begin) const { return data + panels() * panel * begin * 2; }
};

struct Pass {
  std::int64_t begin = 0, depth = 0;
  std::int64_t pieces() const { return round_up(depth, piece_depth) / piece_depth; }
};

Pass pass_at(std::int64_t begin, const TileSizes& sizes) {
  return {begin, std::min(pass_depth, sizes.depth - begin)};
}

Ahead ahead_of(const TileOperand& left, std::int64_t row, std::int64_t end, const Pass& pass) {
  Ahead ahead;
  if (row >= end) return ahead;
  ahead.left_stride = left.row_stride * 2;
  if (left.rows_are_depth) {
    ahead.left = reinterpret_cast<const char*>(left.data + pass.begin * left.row_stride + row);
    ahead.left_lines = pass.depth;
  } else {
    ahead.left = reinterpret_cast<const char*>(left.data + row * left.row_stride + pass.begin);
    ahead.lines_a_row = pass.pieces();
    ahead.left_lines = std::min(panel, end - row) * ahead.lines_a_row;
  }
  return ahead;
}

/// Rows [begin, end) of the columns of one strip; sums [end − begin, strip's columns] and `packed_left` are
/// scratch.
DSPLAN_TILE_TARGET void multiply_block(const TileOperand& left, const Strip& strip, const TileSizes& sizes,
                                       std::int64_t begin, std::int64_t end, const TileResult& result,
                                       float* sums, char* packed_left) {
  const std::int64_t panels = strip.panels();
  for (std::int64_t depth = 0; depth < sizes.depth; depth += pass_depth) {
    const Pass pass = pass_at(depth, sizes);
    const bool last = depth + pass_depth >= sizes.depth;
    const Pass next = pass_at(last ? 0 : depth + pass_depth, sizes);
    const char* right_ahead = strip.pass(next.begin);
    std::int64_t right_lines = sizes.depth > pass_depth ? panels * next.pieces() * piece_bytes / 64 : 0;
    for (std::int64_t row = begin; row < end; row += panel) {
      const std::int64_t rows = std::min(panel, end - row);
      pack_panel(left, row, rows, pass.begin, pass.depth, false, packed_left);
      const bool wraps = row + panel >= end;
      Ahead ahead = wraps && !last
                        ? ahead_of(left, begin, end, next)
                        : ahead_of(left, row + panel, wraps ? sizes.rows : end, wraps ? next : pass);
      ahead.right = right_ahead;
      ahead.right_lines = right_lines;
      float* const row_sums = sums + (row - begin) * panels * panel;
      for (std::int64_t p = 0; p < panels; ++p)
        multiply_panels(packed_left, strip.pass(pass.begin) + p * pass.pieces() * piece_bytes,
                        row_sums + p * block_floats, pass.pieces(), depth > 0, ahead);
      right_ahead = ahead.right;
      right_lines = ahead.right_lines;
      if (!last) continue;
      for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t p = 0; p < panels; ++p)
          hand_on(row_sums + p * block_floats + r / 16 * 2 * register_floats + r % 16 * 16, row + r,
                  strip.first_column + p * panel, first(strip.columns - p * panel), result);
    }
  }
}

DSPLAN_TILE_TARGET void multiply_blocks(const TileOperand& left, const Strip& strip, const TileSizes& sizes,
                                        std::int64_t begin, std::int64_t end, const TileResult& result) {
  const std::int64_t rows = round_up(std::min(block_rows, end - begin), panel);
  const std::int64_t sum_bytes = rows * strip.panels() * panel * 4;
  const Scratch scratch(c10::alloc_cpu(static_cast<std::size_t>(sum_bytes + panel * pass_depth * 2)));
  auto* const sums = static_cast<float*>(scratch.get());
  const RegistersInUse registers;
  for (std::int64_t row = begin; row < end; row += block_rows)
    multiply_block(left, strip, sizes, row, std::min(end, row + block_rows), result, sums,
                   static_cast<char*>(scratch.get()) + sum_bytes);
}

void pack_strip(const TileOperand& right, const Strip& strip, const TileSizes& sizes, char* out) {
  const std::int64_t panels = strip.panels();
  at::parallel_for(0, panels, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t depth = 0; depth < sizes.depth; depth += pass_depth) {
      const Pass pass = pass_at(depth, sizes);
      for (std::int64_t p = begin; p < end; ++p)
        pack_panel(right, strip.first_column + p * panel, strip.columns - p * panel, depth, pass.depth, true,
                   out + panels * panel * depth * 2 + p * pass.pieces() * piece_bytes);
    }
  });
}

/// Linux lets a process use the registers after it has asked (Documentation/arch/x86/xstate.rst).
bool ask_for_registers() {
  constexpr long request_permission = 0x1023, tile_data = 18;
  return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
}

}  // namespace

bool has_tiles() {
  static const bool found = __builtin_cpu_supports("amx-bf16") && __builtin_cpu_supports("avx512bf16") &&
                            __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
                            __builtin_cpu_supports("avx512dq") && ask_for_registers();
  return found;
}

void multiply_tiles(const TileOperand& left, const TileOperand& right, const TileSizes& sizes,
                    const TileResult& result) {
  const std::int64_t widest = std::min(strip_columns, round_up(sizes.columns, panel));
  const Scratch packed(
      c10::alloc_cpu(static_cast<std::size_t>(widest * round_up(sizes.depth, piece_depth) * 2)));
  Strip strip;
  strip.data = static_cast<const char*>(packed.get());
  const std::int64_t panels = round_up(sizes.rows, panel) / panel;
  for (; strip.first_column < sizes.columns; strip.first_column += strip_columns) {
    strip.columns = std::min(strip_columns, sizes.columns - strip.first_column);
    pack_strip(right, strip, sizes, static_cast<char*>(packed.get()));
    at::parallel_for(0, panels, 1, [&](std::int64_t begin, std::int64_t end) {
      multiply_blocks(left, strip, sizes, begin * panel, std::min(end * panel, sizes.rows), result);
    });
  }
}

#else

bool has_tiles() { return false; }

void multiply_tiles(const TileOperand&, const TileOperand&, const TileSizes&, const TileResult&) {
  TORCH_INTERNAL_ASSERT(false, "no matrix registers here");
}

#endif

}  // namespace runtime::kernels
