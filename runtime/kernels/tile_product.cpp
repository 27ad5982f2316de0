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

// Members of the strip and of a block along it: their sums and the part of the strip that a pass over the
// block needs stay in a second-level cache of 2 MiB, one panel of each operand in the first-level cache.
constexpr std::int64_t strip_members = 512, block_members = 512, pass_depth = 256;

/// Of each panel of an operand, the order of its members: as they lie, or 0, 2, … 30, 1, 3, … 31.
struct Order {
  bool even_odd_rows = false, even_odd_columns = false;
};

/// Hands on up to 32 columns of one row.
DSPLAN_TILE_INLINE void hand_on(const float* sums, std::int64_t row, std::int64_t column, __mmask32 mask,
                                bool even_odd_columns, const TileResult& result) {
  __m512 low = _mm512_load_ps(sums), high = _mm512_load_ps(sums + register_floats);
  if (even_odd_columns) {
    const __m512i lower = _mm512_set_epi32(23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    const __m512 even = low;
    low = _mm512_permutex2var_ps(even, lower, high);
    high = _mm512_permutex2var_ps(even, _mm512_add_epi32(lower, _mm512_set1_epi32(8)), high);
  }
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

/// Asks for the lines of the result that a block of sums will go to.
DSPLAN_TILE_INLINE void ask_for_result(std::int64_t row, std::int64_t column, const TileSizes& sizes,
                                       const TileResult& result) {
  const std::int64_t rows = std::min(panel, sizes.rows - row);
  const std::int64_t element = result.sum != nullptr ? 4 : 2;
  const char* line = (result.sum != nullptr ? reinterpret_cast<const char*>(result.sum)
                                            : reinterpret_cast<const char*>(result.rounded)) +
                     (row * result.row_stride + column) * element;
  for (std::int64_t r = 0; r < rows; ++r, line += result.row_stride * element) {
    _mm_prefetch(line, _MM_HINT_T0);
    if (result.sum != nullptr) _mm_prefetch(line + 64, _MM_HINT_T0);
  }
}

/// Hands on a block of sums whose first is that of `row` and `column`.
DSPLAN_TILE_INLINE void hand_on_block(const float* sums, std::int64_t row, std::int64_t column,
                                      const TileSizes& sizes, const Order& order, const TileResult& result) {
  const std::int64_t rows = std::min(panel, sizes.rows - row);
  const __mmask32 mask = first(sizes.columns - column);
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t half = order.even_odd_rows ? r % 2 : r / 16, i = order.even_odd_rows ? r / 2 : r % 16;
    hand_on(sums + half * 2 * register_floats + i * 16, row + r, column, mask, order.even_odd_columns,
            result);
  }
}

struct Pass {
  std::int64_t begin = 0, depth = 0;
  std::int64_t pieces() const { return round_up(depth, piece_depth) / piece_depth; }
};

Pass pass_at(std::int64_t begin, std::int64_t depth) { return {begin, std::min(pass_depth, depth - begin)}; }

/// One of the two operands and its members: rows of the left, columns of the right.
struct Side {
  const TileOperand& operand;
  std::int64_t members = 0;
  bool is_right = false;

  /// Whether its panels have the even members before the odd ones.
  bool is_even_odd() const { return operand.rows_are_depth; }

  /// The piece of 32 members from `member` on, and of 32 of depth from `depth` on.
  void pack_piece(std::int64_t member, std::int64_t depth, std::int64_t depth_left, char* out) const {
    if (operand.rows_are_depth)
      pack_even_odd_from_depth(operand.data + depth * operand.row_stride + member, operand.row_stride,
                               members - member, depth_left, is_right, out);
    else
      pack_from_members(operand.data + member * operand.row_stride + depth, operand.row_stride,
                        members - member, depth_left, is_right, out);
  }
  void pack(std::int64_t member, const Pass& pass, char* out) const {
    for (std::int64_t k = 0; k < pass.depth; k += piece_depth, out += piece_bytes)
      pack_piece(member, pass.begin + k, pass.depth - k, out);
  }
  /// The lines of the panel that begins with `member`; none from `end` on.
  void ask_for(std::int64_t member, std::int64_t end, const Pass& pass, Ahead& ahead) const {
    if (member >= end) return;
    ahead.raw_stride = operand.row_stride * 2;
    if (operand.rows_are_depth) {
      ahead.raw = reinterpret_cast<const char*>(operand.data + pass.begin * operand.row_stride + member);
      ahead.raw_lines = pass.depth;
    } else {
      ahead.raw = reinterpret_cast<const char*>(operand.data + member * operand.row_stride + pass.begin);
      ahead.lines_a_row = pass.pieces();
      ahead.raw_lines = std::min(panel, end - member) * ahead.lines_a_row;
    }
  }
};

/// A strip of members, packed: for each pass over the depth its panels.
struct Strip {
  const char* data = nullptr;
  std::int64_t first_member = 0, members = 0;
  std::int64_t panels() const { return round_up(members, panel) / panel; }
  const char* pass(std::int64_t begin) const { return data + panels() * panel * begin * 2; }
};

/// The product, and which side is cut into strips.
struct Product {
  Side strips, blocks;
  const TileSizes& sizes;
  const TileResult& result;
  Order order;
};

/// Of the scratch of a thread: sums [members of a block, members of the strip] and one packed panel.
struct BlockScratch {
  float* sums = nullptr;
  char* packed = nullptr;
};

DSPLAN_TILE_INLINE void multiply_and_hand_on(const Product& product, const char* packed, const char* strip,
                                             std::int64_t pieces, const float* from, std::int64_t member,
                                             std::int64_t strip_member, Ahead& ahead) {
  alignas(64) float sums[block_floats];
  const bool goes_down = product.strips.is_right;
  const std::int64_t row = goes_down ? member : strip_member, column = goes_down ? strip_member : member;
  ask_for_result(row, column, product.sizes, product.result);
  multiply_panels(goes_down ? packed : strip, goes_down ? strip : packed, pieces, from, sums, ahead);
  hand_on_block(sums, row, column, product.sizes, product.order, product.result);
}

/// Members [begin, end) along one strip.
DSPLAN_TILE_TARGET void multiply_block(const Product& product, const Strip& strip, std::int64_t begin,
                                       std::int64_t end, const BlockScratch& scratch) {
  const std::int64_t panels = strip.panels(), whole = product.sizes.depth;
  for (std::int64_t depth = 0; depth < whole; depth += pass_depth) {
    const Pass pass = pass_at(depth, whole);
    const bool last = depth + pass_depth >= whole;
    const Pass next = pass_at(last ? 0 : depth + pass_depth, whole);
    const char* packed_ahead = strip.pass(next.begin);
    std::int64_t packed_lines = whole > pass_depth ? panels * next.pieces() * piece_bytes / 64 : 0;
    for (std::int64_t member = begin; member < end; member += panel) {
      product.blocks.pack(member, pass, scratch.packed);
      Ahead ahead;
      if (member + panel < end)
        product.blocks.ask_for(member + panel, end, pass, ahead);
      else
        product.blocks.ask_for(last ? end : begin, last ? product.blocks.members : end, next, ahead);
      ahead.packed = packed_ahead;
      ahead.packed_lines = packed_lines;
      float* const sums = scratch.sums + (member - begin) * panels * panel;
      for (std::int64_t p = 0; p < panels; ++p) {
        const char* const packed = strip.pass(pass.begin) + p * pass.pieces() * piece_bytes;
        float* const sum = sums + p * block_floats;
        const float* const from = depth > 0 ? sum : nullptr;
        if (last)
          multiply_and_hand_on(product, scratch.packed, packed, pass.pieces(), from, member,
                               strip.first_member + p * panel, ahead);
        else if (product.strips.is_right)
          multiply_panels(scratch.packed, packed, pass.pieces(), from, sum, ahead);
        else
          multiply_panels(packed, scratch.packed, pass.pieces(), from, sum, ahead);
      }
      packed_ahead = ahead.packed;
      packed_lines = ahead.packed_lines;
    }
  }
}

DSPLAN_TILE_TARGET void multiply_blocks(const Product& product, const Strip& strip, std::int64_t begin,
                                        std::int64_t end) {
  const std::int64_t members = round_up(std::min(block_members, end - begin), panel);
  const std::int64_t sum_bytes = product.sizes.depth > pass_depth ? members * strip.panels() * panel * 4 : 0;
  const Scratch memory(c10::alloc_cpu(static_cast<std::size_t>(sum_bytes + panel * pass_depth * 2)));
  auto* const data = static_cast<char*>(memory.get());
  const BlockScratch scratch{reinterpret_cast<float*>(data), data + sum_bytes};
  const RegistersInUse registers;
  for (std::int64_t member = begin; member < end; member += block_members)
    multiply_block(product, strip, member, std::min(end, member + block_members), scratch);
}

/// Goes along the rows of the operand, whichever way they lie: what comes next is then read ahead.
void pack_panels(const Side& side, const Strip& strip, const Pass& pass, std::int64_t begin, std::int64_t end,
                 char* out) {
  const auto pack = [&](std::int64_t p, std::int64_t k) {
    side.pack_piece(strip.first_member + p * panel, pass.begin + k * piece_depth,
                    pass.depth - k * piece_depth, out + (p * pass.pieces() + k) * piece_bytes);
  };
  if (side.operand.rows_are_depth) {
    for (std::int64_t k = 0; k < pass.pieces(); ++k)
      for (std::int64_t p = begin; p < end; ++p) pack(p, k);
  } else {
    for (std::int64_t p = begin; p < end; ++p)
      for (std::int64_t k = 0; k < pass.pieces(); ++k) pack(p, k);
  }
}

void pack_strip(const Product& product, const Strip& strip, char* out) {
  const std::int64_t panels = strip.panels(), whole = product.sizes.depth;
  at::parallel_for(0, panels, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t depth = 0; depth < whole; depth += pass_depth)
      pack_panels(product.strips, strip, pass_at(depth, whole), begin, end, out + panels * panel * depth * 2);
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
  const Side rows{left, sizes.rows, false}, columns{right, sizes.columns, true};
  // A strip is packed once, a block once for each strip: packing the left from rows of depth, which turns
  // them round, is the dearest.
  const Order order{rows.is_even_odd(), columns.is_even_odd()};
  const Product product = left.rows_are_depth ? Product{rows, columns, sizes, result, order}
                                              : Product{columns, rows, sizes, result, order};
  const std::int64_t members = product.strips.members;
  const std::int64_t widest = std::min(strip_members, round_up(members, panel));
  const Scratch packed(
      c10::alloc_cpu(static_cast<std::size_t>(widest * round_up(sizes.depth, piece_depth) * 2)));
  Strip strip;
  strip.data = static_cast<const char*>(packed.get());
  const std::int64_t panels = round_up(product.blocks.members, panel) / panel;
  for (; strip.first_member < members; strip.first_member += strip_members) {
    strip.members = std::min(strip_members, members - strip.first_member);
    pack_strip(product, strip, static_cast<char*>(packed.get()));
    at::parallel_for(0, panels, 1, [&](std::int64_t begin, std::int64_t end) {
      multiply_blocks(product, strip, begin * panel, std::min(end * panel, product.blocks.members));
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
