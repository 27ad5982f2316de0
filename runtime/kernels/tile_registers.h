// The matrix registers of x86 processors (AMX) and what the kernels on them share: packing of operands and
// the product of two panels.
//
// A register holds 16 rows of 64 bytes. Two by two of them are worked on together: a panel is 32 rows of the
// left or 32 columns of the right operand, cut into pieces of 32 elements of depth, two registers each. Of
// the left, a register holds 16 rows with 32 of depth each; of the right, 16 pairs of depth with 16 columns
// each.
#pragma once

#if defined(__GNUC__) && !defined(__clang__)
// GCC 12's own header leaves a register undefined where all of it is overwritten.
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

#include <cstdint>
#include <memory>

#include <c10/core/impl/alloc_cpu.h>
#include <c10/util/BFloat16.h>

#include "runtime/kernels/tile_product.h"

#if defined(__x86_64__) && defined(__GNUC__) && defined(__linux__)
#define DSPLAN_TILES 1
#include <immintrin.h>

#define DSPLAN_TILE_TARGET \
  __attribute__((target("amx-tile,amx-bf16,avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))
#define DSPLAN_TILE_INLINE [[gnu::always_inline]] inline DSPLAN_TILE_TARGET

namespace runtime::kernels::tiles {

constexpr std::int64_t panel = 32, piece_depth = 32, register_bytes = 1024, piece_bytes = 2 * register_bytes;
constexpr std::int64_t register_floats = register_bytes / 4, block_floats = 4 * register_floats;

constexpr std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

struct FreeScratch {
  void operator()(void* memory) const { c10::free_cpu(memory); }
};
using Scratch = std::unique_ptr<void, FreeScratch>;

/// The palette that all registers are configured with: 16 rows of 64 bytes.
struct alignas(64) TileConfiguration {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

/// As long as it lives the thread's registers are configured so.
class RegistersInUse {
 public:
  DSPLAN_TILE_TARGET RegistersInUse() {
    // Static: of a local one GCC 12 keeps no more than the first word for the instruction to read.
    static constexpr TileConfiguration configuration;
    _tile_loadconfig(&configuration);
  }
  DSPLAN_TILE_TARGET ~RegistersInUse() { _tile_release(); }
  RegistersInUse(const RegistersInUse&) = delete;
  RegistersInUse& operator=(const RegistersInUse&) = delete;
};

DSPLAN_TILE_INLINE __mmask32 first(std::int64_t count) {
  return count >= 32 ? ~0U : count <= 0 ? 0U : (1U << count) - 1;
}

/// Of 16 × 16 elements of 4 bytes.
DSPLAN_TILE_INLINE void transpose(__m512i r[16]) {
  __m512i t[16];
  for (int i = 0; i < 8; ++i) {
    t[2 * i] = _mm512_unpacklo_epi32(r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = _mm512_unpackhi_epi32(r[2 * i], r[2 * i + 1]);
  }
  for (int i = 0; i < 4; ++i) {
    r[4 * i] = _mm512_unpacklo_epi64(t[4 * i], t[4 * i + 2]);
    r[4 * i + 1] = _mm512_unpackhi_epi64(t[4 * i], t[4 * i + 2]);
    r[4 * i + 2] = _mm512_unpacklo_epi64(t[4 * i + 1], t[4 * i + 3]);
    r[4 * i + 3] = _mm512_unpackhi_epi64(t[4 * i + 1], t[4 * i + 3]);
  }
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0x88);
    t[i + 4] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0xdd);
    t[i + 8] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0x88);
    t[i + 12] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0xdd);
  }
  for (int i = 0; i < 4; ++i) {
    r[i] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0x88);
    r[i + 8] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0xdd);
    r[i + 4] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0x88);
    r[i + 12] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0xdd);
  }
}

DSPLAN_TILE_INLINE void store_register(char* out, const __m512i r[16]) {
  for (int i = 0; i < 16; ++i) _mm512_store_si512(out + 64 * i, r[i]);
}

/// Packs one piece of a panel. `members` rows or columns and `depth` elements are there; the rest
/// becomes 0.
inline DSPLAN_TILE_TARGET void pack_from_members(const c10::BFloat16* source, std::int64_t stride,
                                                 std::int64_t members, std::int64_t depth, bool is_right,
                                                 char* out) {
  const __mmask32 mask = first(depth);
  for (int half = 0; half < 2; ++half) {
    __m512i r[16];
    for (int i = 0; i < 16; ++i)
      r[i] = 16 * half + i < members ? _mm512_maskz_loadu_epi16(mask, source + (16 * half + i) * stride)
                                     : _mm512_setzero_si512();
    if (is_right) transpose(r);
    store_register(out + half * register_bytes, r);
  }
}

inline DSPLAN_TILE_TARGET void pack_from_depth(const c10::BFloat16* source, std::int64_t stride,
                                               std::int64_t members, std::int64_t depth, bool is_right,
                                               char* out) {
  // Elements of two rows side by side.
  alignas(64) static constexpr std::uint16_t pairs[32] = {0,  32, 1,  33, 2,  34, 3,  35, 4,  36, 5,
                                                          37, 6,  38, 7,  39, 8,  40, 9,  41, 10, 42,
                                                          11, 43, 12, 44, 13, 45, 14, 46, 15, 47};
  const __m512i low = _mm512_load_si512(pairs), high = _mm512_add_epi16(low, _mm512_set1_epi16(16));
  const __mmask32 mask = first(members);
  __m512i r[16], s[16];
  for (int i = 0; i < 16; ++i) {
    const __m512i even =
        2 * i < depth ? _mm512_maskz_loadu_epi16(mask, source + (2 * i) * stride) : _mm512_setzero_si512();
    const __m512i odd = 2 * i + 1 < depth ? _mm512_maskz_loadu_epi16(mask, source + (2 * i + 1) * stride)
                                          : _mm512_setzero_si512();
    r[i] = _mm512_permutex2var_epi16(even, low, odd);
    s[i] = _mm512_permutex2var_epi16(even, high, odd);
  }
  if (!is_right) {
    transpose(r);
    transpose(s);
  }
  store_register(out, r);
  store_register(out + register_bytes, s);
}

/// The same for members in the order 0, 2, … 30, 1, 3, … 31, in a third of the time: nothing moves between
/// lanes.
inline DSPLAN_TILE_TARGET void pack_even_odd_from_depth(const c10::BFloat16* source, std::int64_t stride,
                                                        std::int64_t members, std::int64_t depth,
                                                        bool is_right, char* out) {
  constexpr __mmask32 upper_halves = 0xaaaaaaaa;
  const __mmask32 mask = first(members);
  __m512i r[16], s[16];
  for (int i = 0; i < 16; ++i) {
    const __m512i even =
        2 * i < depth ? _mm512_maskz_loadu_epi16(mask, source + (2 * i) * stride) : _mm512_setzero_si512();
    const __m512i odd = 2 * i + 1 < depth ? _mm512_maskz_loadu_epi16(mask, source + (2 * i + 1) * stride)
                                          : _mm512_setzero_si512();
    r[i] = _mm512_mask_blend_epi16(upper_halves, even, _mm512_slli_epi32(odd, 16));
    s[i] = _mm512_mask_blend_epi16(upper_halves, _mm512_srli_epi32(even, 16), odd);
  }
  if (!is_right) {
    transpose(r);
    transpose(s);
  }
  store_register(out, r);
  store_register(out + register_bytes, s);
}

/// One panel, depth [begin, begin + depth): pieces one after another.
inline void pack_panel(const TileOperand& operand, std::int64_t first_member, std::int64_t members,
                       std::int64_t begin, std::int64_t depth, bool is_right, char* out) {
  for (std::int64_t k = 0; k < depth; k += piece_depth, out += piece_bytes) {
    if (operand.rows_are_depth)
      pack_from_depth(operand.data + (begin + k) * operand.row_stride + first_member, operand.row_stride,
                      members, depth - k, is_right, out);
    else
      pack_from_members(operand.data + first_member * operand.row_stride + begin + k, operand.row_stride,
                        members, depth - k, is_right, out);
  }
}

/// Cache lines that are asked for while registers multiply: the next panel of the operand that is packed as
/// it is needed, still where the caller has it, and the part of the other, packed one for the next pass.
struct Ahead {
  const char* raw = nullptr;
  std::int64_t raw_stride = 0, lines_a_row = 1, line = 0, raw_lines = 0;
  const char* packed = nullptr;
  std::int64_t packed_lines = 0;
};

DSPLAN_TILE_INLINE void ask_for(Ahead& ahead) {
  for (int i = 0; i < 2 && ahead.raw_lines > 0; ++i, --ahead.raw_lines) {
    _mm_prefetch(ahead.raw + ahead.line * 64, _MM_HINT_T1);
    if (++ahead.line < ahead.lines_a_row) continue;
    ahead.line = 0;
    ahead.raw += ahead.raw_stride;
  }
  for (int i = 0; i < 2 && ahead.packed_lines > 0; ++i, --ahead.packed_lines, ahead.packed += 64)
    _mm_prefetch(ahead.packed, _MM_HINT_T1);
}

/// to = from + left panel · right panel; the four registers of sums one after another, `from` null for 0.
DSPLAN_TILE_INLINE void multiply_panels(const char* left, const char* right, std::int64_t pieces,
                                        const float* from, float* to, Ahead& ahead) {
  if (from != nullptr) {
    _tile_loadd(0, from, 64);
    _tile_loadd(1, from + register_floats, 64);
    _tile_loadd(2, from + 2 * register_floats, 64);
    _tile_loadd(3, from + 3 * register_floats, 64);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  for (std::int64_t i = 0; i < pieces; ++i, left += piece_bytes, right += piece_bytes) {
    _tile_loadd(4, left, 64);
    _tile_loadd(6, right, 64);
    _tile_loadd(7, right + register_bytes, 64);
    _tile_loadd(5, left + register_bytes, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
    ask_for(ahead);
  }
  _tile_stored(0, to, 64);
  _tile_stored(1, to + register_floats, 64);
  _tile_stored(2, to + 2 * register_floats, 64);
  _tile_stored(3, to + 3 * register_floats, 64);
}

DSPLAN_TILE_INLINE __m512 widened(const c10::BFloat16* values, __mmask16 mask) {
  return _mm512_castsi512_ps(
      _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, values)), 16));
}

}  // namespace runtime::kernels::tiles

#endif
