#include "runtime/kernels/tile_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>

#include "runtime/kernels/tile_registers.h"

namespace runtime::kernels {

#ifdef DSPLAN_TILES

namespace {

using namespace tiles;

/// Panels of keys (forward) or queries (backward) that are worked on before their weights are used: as many
/// as stay in the first-level cache.
constexpr std::int64_t block_panels = 8;
constexpr std::int64_t block_bytes = block_floats * 4;

/// One head of a tensor.
struct HeadMatrix {
  c10::BFloat16* data = nullptr;
  std::int64_t stride = 0;
  TileOperand operand(bool rows_are_depth) const { return {data, stride, rows_are_depth}; }
};

HeadMatrix head_of(const at::Tensor& heads, std::int64_t index) {
  const std::int64_t sequence = index / heads.size(1), head = index % heads.size(1);
  auto* data = static_cast<c10::BFloat16*>(const_cast<void*>(heads.const_data_ptr()));
  return {data + sequence * heads.stride(0) + head * heads.stride(1), heads.stride(2)};
}

/// Of one head, in panels.
struct Extent {
  explicit Extent(const at::Tensor& heads)
      : length(heads.size(2)),
        dim(heads.size(3)),
        tokens(round_up(length, panel) / panel),
        dims(round_up(dim, panel) / panel),
        scale(static_cast<float>(1 / std::sqrt(static_cast<double>(dim)))),
        exponent_scale(static_cast<float>(M_LOG2E / std::sqrt(static_cast<double>(dim)))) {}
  std::int64_t length, dim;
  std::int64_t tokens, dims;
  float scale, exponent_scale;  ///< of a score in its own right, and as an exponent of 2
};

/// Scratch, handed out piece by piece.
class ScratchRun {
 public:
  explicit ScratchRun(std::int64_t bytes) : memory_(c10::alloc_cpu(static_cast<std::size_t>(bytes))) {}
  template <class Element = char>
  Element* take(std::int64_t bytes) {
    char* const begin = static_cast<char*>(memory_.get()) + used_;
    used_ += bytes;
    return reinterpret_cast<Element*>(begin);
  }

 private:
  Scratch memory_;
  std::int64_t used_ = 0;
};

/// 2^x: 2^n by the exponent, 2^f with |f| ≤ ½ by its Taylor polynomial of degree 6 (remainder 1.3 · 10⁻⁷).
DSPLAN_TILE_INLINE __m512 power_of_two(__m512 x) {
  const __m512 n = _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  const __m512 f = _mm512_sub_ps(x, n);
  __m512 p = _mm512_set1_ps(1.5403530e-4F);
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(1.3333558e-3F));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(9.6181291e-3F));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(5.5504109e-2F));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(2.4022651e-1F));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(6.9314718e-1F));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(1));
  return _mm512_scalef_ps(p, n);
}

/// The queries of a vector that a key may be seen by; both counted from the beginning of a panel that holds
/// both.
[[gnu::always_inline]] inline __mmask16 not_before(std::int64_t key, std::int64_t first_query) {
  const std::int64_t skipped = std::clamp<std::int64_t>(key - first_query, 0, 16);
  return static_cast<__mmask16>(0xffffU << skipped);
}

/// Where a vector of 16 of a block's sums stands: row 0 … 31, left or right half.
DSPLAN_TILE_INLINE const float* at(const float* block, std::int64_t row, std::int64_t half) {
  return block + (row / 16 * 2 + half) * register_floats + row % 16 * 16;
}
DSPLAN_TILE_INLINE float* at(float* block, std::int64_t row, std::int64_t half) {
  return block + (row / 16 * 2 + half) * register_floats + row % 16 * 16;
}

DSPLAN_TILE_INLINE void multiply(const char* left, const char* right, float* sums, std::int64_t pieces,
                                 bool add) {
  Ahead nothing;
  multiply_panels(left, right, pieces, add ? sums : nullptr, sums, nothing);
}

/// A panel's sums [rows, dim], those of each 32 columns in a block of their own, rounded.
DSPLAN_TILE_TARGET void store_rows(const float* sums, std::int64_t rows, const Extent& extent,
                                   c10::BFloat16* out, std::int64_t stride) {
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t d = 0; d < extent.dims; ++d) {
      const float* block = sums + d * block_floats;
      _mm512_mask_storeu_epi16(
          out + row * stride + d * panel, first(extent.dim - d * panel),
          (__m512i)_mm512_cvtne2ps_pbh(_mm512_load_ps(at(block, row, 1)), _mm512_load_ps(at(block, row, 0))));
    }
}

/// The same of the transposed sums [dim, rows], each row times its factor.
DSPLAN_TILE_TARGET void store_columns(const float* sums, const float* factors, std::int64_t rows,
                                      const Extent& extent, c10::BFloat16* out, std::int64_t stride) {
  for (std::int64_t d = 0; d < extent.dims; ++d)
    for (std::int64_t half = 0; half < 2; ++half) {
      const float* block = sums + d * block_floats;
      const __m512 factor = _mm512_load_ps(factors + half * 16);
      __m512i low[16], high[16];
      for (int i = 0; i < 16; ++i) {
        low[i] = _mm512_castps_si512(_mm512_mul_ps(_mm512_load_ps(at(block, i, half)), factor));
        high[i] = _mm512_castps_si512(_mm512_mul_ps(_mm512_load_ps(at(block, 16 + i, half)), factor));
      }
      transpose(low);
      transpose(high);
      for (int i = 0; i < 16 && half * 16 + i < rows; ++i)
        _mm512_mask_storeu_epi16(
            out + (half * 16 + i) * stride + d * panel, first(extent.dim - d * panel),
            (__m512i)_mm512_cvtne2ps_pbh(_mm512_castsi512_ps(high[i]), _mm512_castsi512_ps(low[i])));
    }
}

/// What the softmax of a panel of queries has come to; exponents of 2.
struct alignas(64) RunningSoftmax {
  float maximum[panel];
  float sum[panel];
};

/// Scores of a block, transposed [keys, queries], → weights 2^(score − maximum), packed as a right operand
/// whose depth the keys are; what was summed up so far is scaled to the new maximum. The last panel of keys
/// may be that of the queries.
DSPLAN_TILE_TARGET void weigh_block(const float* scores, std::int64_t panels, bool ends_in_diagonal,
                                    const Extent& extent, RunningSoftmax& softmax, char* weights, float* sums,
                                    bool begun) {
  // Elements of two rows side by side.
  const __m512i low = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  const __m512i pairs =
      _mm512_or_si512(low, _mm512_slli_epi32(_mm512_add_epi32(low, _mm512_set1_epi32(16)), 16));
  const __m512 scale = _mm512_set1_ps(extent.exponent_scale);
  for (std::int64_t half = 0; half < 2; ++half) {
    const auto seen = [&](std::int64_t p, std::int64_t key) {
      return ends_in_diagonal && p == panels - 1 ? not_before(key, half * 16) : __mmask16(0xffff);
    };
    __m512 highest = _mm512_set1_ps(-std::numeric_limits<float>::infinity());
    for (std::int64_t p = 0; p < panels; ++p)
      for (std::int64_t key = 0; key < panel; ++key)
        highest = _mm512_mask_max_ps(highest, seen(p, key), highest,
                                     _mm512_load_ps(at(scores + p * block_floats, key, half)));
    const __m512 before = _mm512_load_ps(softmax.maximum + half * 16);
    const __m512 maximum = _mm512_max_ps(before, _mm512_mul_ps(highest, scale));
    const __m512 shrink = power_of_two(_mm512_sub_ps(before, maximum));
    __m512 sum = _mm512_mul_ps(_mm512_load_ps(softmax.sum + half * 16), shrink);
    for (std::int64_t p = 0; p < panels; ++p)
      for (std::int64_t key = 0; key < panel; key += 2) {
        const float* block = scores + p * block_floats;
        const __m512 even =
            power_of_two(_mm512_fmsub_ps(_mm512_load_ps(at(block, key, half)), scale, maximum));
        const __m512 odd =
            power_of_two(_mm512_fmsub_ps(_mm512_load_ps(at(block, key + 1, half)), scale, maximum));
        const __m512 a = _mm512_maskz_mov_ps(seen(p, key), even);
        const __m512 b = _mm512_maskz_mov_ps(seen(p, key + 1), odd);
        sum = _mm512_add_ps(sum, _mm512_add_ps(a, b));
        _mm512_store_si512(weights + p * piece_bytes + half * register_bytes + key / 2 * 64,
                           _mm512_permutexvar_epi16(pairs, (__m512i)_mm512_cvtne2ps_pbh(b, a)));
      }
    _mm512_store_ps(softmax.maximum + half * 16, maximum);
    _mm512_store_ps(softmax.sum + half * 16, sum);
    if (!begun) continue;
    for (std::int64_t d = 0; d < extent.dims; ++d)
      for (std::int64_t row = 0; row < panel; ++row) {
        float* value = at(sums + d * block_floats, row, half);
        _mm512_store_ps(value, _mm512_mul_ps(_mm512_load_ps(value), shrink));
      }
  }
}

class ForwardHead {
 public:
  explicit ForwardHead(const Extent& extent)
      : extent_(extent),
        scratch_(2 * extent.tokens * extent.dims * piece_bytes + extent.dims * (piece_bytes + block_bytes) +
                 block_panels * (block_bytes + piece_bytes)) {
    keys_ = scratch_.take(extent.tokens * extent.dims * piece_bytes);
    values_ = scratch_.take(extent.tokens * extent.dims * piece_bytes);
    queries_ = scratch_.take(extent.dims * piece_bytes);
    sums_ = scratch_.take<float>(extent.dims * block_bytes);
    scores_ = scratch_.take<float>(block_panels * block_bytes);
    weights_ = scratch_.take(block_panels * piece_bytes);
  }

  void run(const HeadMatrix& queries, const HeadMatrix& keys, const HeadMatrix& values,
           const HeadMatrix& output, float* log_sum_exp) {
    for (std::int64_t j = 0; j < extent_.tokens; ++j)
      pack_panel(keys.operand(false), j * panel, extent_.length - j * panel, 0, extent_.dim, false,
                 keys_ + j * extent_.dims * piece_bytes);
    for (std::int64_t d = 0; d < extent_.dims; ++d)
      pack_panel(values.operand(true), d * panel, extent_.dim - d * panel, 0, extent_.length, false,
                 values_ + d * extent_.tokens * piece_bytes);
    for (std::int64_t i = 0; i < extent_.tokens; ++i) {
      const std::int64_t rows = std::min(panel, extent_.length - i * panel);
      pack_panel(queries.operand(false), i * panel, rows, 0, extent_.dim, true, queries_);
      attend_panel(i);
      store_panel(rows, output.data + i * panel * output.stride, output.stride, log_sum_exp + i * panel);
    }
  }

 private:
  DSPLAN_TILE_TARGET void attend_panel(std::int64_t i) {
    std::fill_n(softmax_.maximum, panel, -std::numeric_limits<float>::infinity());
    std::fill_n(softmax_.sum, panel, 0.0F);
    for (std::int64_t begin = 0; begin <= i; begin += block_panels) {
      const std::int64_t panels = std::min(block_panels, i + 1 - begin);
      for (std::int64_t p = 0; p < panels; ++p)
        multiply(keys_ + (begin + p) * extent_.dims * piece_bytes, queries_, scores_ + p * block_floats,
                 extent_.dims, false);
      weigh_block(scores_, panels, begin + panels > i, extent_, softmax_, weights_, sums_, begin > 0);
      for (std::int64_t d = 0; d < extent_.dims; ++d)
        multiply(values_ + (d * extent_.tokens + begin) * piece_bytes, weights_, sums_ + d * block_floats,
                 panels, begin > 0);
    }
  }

  void store_panel(std::int64_t rows, c10::BFloat16* out, std::int64_t stride, float* log_sum_exp) {
    alignas(64) float factors[panel];
    for (std::int64_t i = 0; i < panel; ++i) factors[i] = 1 / softmax_.sum[i];
    store_columns(sums_, factors, rows, extent_, out, stride);
    for (std::int64_t i = 0; i < rows; ++i)
      log_sum_exp[i] = (softmax_.maximum[i] + std::log2(softmax_.sum[i])) * static_cast<float>(M_LN2);
  }

  const Extent& extent_;
  ScratchRun scratch_;
  char *keys_, *values_, *queries_, *weights_;
  float *sums_, *scores_;
  RunningSoftmax softmax_;
};

/// Σ over the dim of a · b for each row.
DSPLAN_TILE_TARGET void dot_rows(const HeadMatrix& a, const HeadMatrix& b, const Extent& extent, float* out) {
  for (std::int64_t row = 0; row < extent.length; ++row) {
    __m512 sum = _mm512_setzero_ps();
    for (std::int64_t d = 0; d < extent.dim; d += 16) {
      const auto mask = static_cast<__mmask16>(first(std::min<std::int64_t>(extent.dim - d, 16)));
      sum = _mm512_fmadd_ps(widened(a.data + row * a.stride + d, mask),
                            widened(b.data + row * b.stride + d, mask), sum);
    }
    out[row] = _mm512_reduce_add_ps(sum);
  }
}

struct BackwardOperands {
  HeadMatrix queries, keys, values, output, output_gradient;
  const float* log_sum_exp = nullptr;
  HeadMatrix query_gradient, key_gradient, value_gradient;
};

/// Goes through the panels of keys, and for each through those of the queries that see it.
class BackwardHead {
 public:
  explicit BackwardHead(const Extent& extent)
      : extent_(extent),
        scratch_(extent.tokens * extent.dims * (4 * piece_bytes + block_bytes) +
                 2 * extent.tokens * panel * 4 + extent.dims * (3 * piece_bytes + 2 * block_bytes) +
                 2 * block_bytes + (2 * block_panels + 1) * piece_bytes) {
    const std::int64_t head = extent.tokens * extent.dims * piece_bytes;
    queries_ = scratch_.take(head);
    gradients_ = scratch_.take(head);
    queries_by_dim_ = scratch_.take(head);
    gradients_by_dim_ = scratch_.take(head);
    query_sums_ = scratch_.take<float>(extent.tokens * extent.dims * block_bytes);
    exponents_ = scratch_.take<float>(extent.tokens * panel * 4);
    dots_ = scratch_.take<float>(extent.tokens * panel * 4);
    keys_ = scratch_.take(extent.dims * piece_bytes);
    values_ = scratch_.take(extent.dims * piece_bytes);
    keys_by_dim_ = scratch_.take(extent.dims * piece_bytes);
    key_sums_ = scratch_.take<float>(extent.dims * block_bytes);
    value_sums_ = scratch_.take<float>(extent.dims * block_bytes);
    scores_ = scratch_.take<float>(block_bytes);
    weight_gradients_ = scratch_.take<float>(block_bytes);
    weights_ = scratch_.take(block_panels * piece_bytes);
    score_gradients_ = scratch_.take(block_panels * piece_bytes);
    turned_ = scratch_.take(piece_bytes);
  }

  void run(const BackwardOperands& head) {
    pack_queries(head);
    for (std::int64_t j = 0; j < extent_.tokens; ++j) {
      const std::int64_t rows = std::min(panel, extent_.length - j * panel);
      pack_keys(head, j, rows);
      for (std::int64_t begin = j; begin < extent_.tokens; begin += block_panels)
        pass_block(j, begin, std::min(block_panels, extent_.tokens - begin));
      store(key_sums_, head.key_gradient, j, rows);
      store(value_sums_, head.value_gradient, j, rows);
    }
    for (std::int64_t i = 0; i < extent_.tokens; ++i)
      store(query_sums_ + i * extent_.dims * block_floats, head.query_gradient, i,
            std::min(panel, extent_.length - i * panel));
  }

 private:
  void pack_queries(const BackwardOperands& head) {
    const std::int64_t panel_bytes = extent_.dims * piece_bytes, dim_bytes = extent_.tokens * piece_bytes;
    for (std::int64_t i = 0; i < extent_.tokens; ++i) {
      const std::int64_t rows = extent_.length - i * panel;
      pack_panel(head.queries.operand(false), i * panel, rows, 0, extent_.dim, true,
                 queries_ + i * panel_bytes);
      pack_panel(head.output_gradient.operand(false), i * panel, rows, 0, extent_.dim, true,
                 gradients_ + i * panel_bytes);
    }
    for (std::int64_t d = 0; d < extent_.dims; ++d) {
      const std::int64_t columns = extent_.dim - d * panel;
      pack_panel(head.queries.operand(true), d * panel, columns, 0, extent_.length, true,
                 queries_by_dim_ + d * dim_bytes);
      pack_panel(head.output_gradient.operand(true), d * panel, columns, 0, extent_.length, true,
                 gradients_by_dim_ + d * dim_bytes);
    }
    std::fill_n(exponents_, extent_.tokens * panel, 0.0F);
    std::fill_n(dots_, extent_.tokens * panel, 0.0F);
    for (std::int64_t i = 0; i < extent_.length; ++i)
      exponents_[i] = head.log_sum_exp[i] * static_cast<float>(M_LOG2E);
    dot_rows(head.output, head.output_gradient, extent_, dots_);
  }

  void pack_keys(const BackwardOperands& head, std::int64_t j, std::int64_t rows) {
    pack_panel(head.keys.operand(false), j * panel, rows, 0, extent_.dim, false, keys_);
    pack_panel(head.values.operand(false), j * panel, rows, 0, extent_.dim, false, values_);
    const HeadMatrix below{head.keys.data + j * panel * head.keys.stride, head.keys.stride};
    for (std::int64_t d = 0; d < extent_.dims; ++d)
      pack_panel(below.operand(true), d * panel, extent_.dim - d * panel, 0, rows, true,
                 keys_by_dim_ + d * piece_bytes);
  }

  DSPLAN_TILE_TARGET void pass_block(std::int64_t j, std::int64_t begin, std::int64_t panels) {
    for (std::int64_t p = 0; p < panels; ++p) {
      const std::int64_t i = begin + p;
      multiply(keys_, queries_ + i * extent_.dims * piece_bytes, scores_, extent_.dims, false);
      multiply(values_, gradients_ + i * extent_.dims * piece_bytes, weight_gradients_, extent_.dims, false);
      weigh(i, i == j, p);
      float* const sums = query_sums_ + i * extent_.dims * block_floats;
      for (std::int64_t d = 0; d < extent_.dims; ++d)
        multiply(turned_, keys_by_dim_ + d * piece_bytes, sums + d * block_floats, 1, j > 0);
    }
    for (std::int64_t d = 0; d < extent_.dims; ++d) {
      const std::int64_t piece = (d * extent_.tokens + begin) * piece_bytes;
      multiply(weights_, gradients_by_dim_ + piece, value_sums_ + d * block_floats, panels, begin > j);
      multiply(score_gradients_, queries_by_dim_ + piece, key_sums_ + d * block_floats, panels, begin > j);
    }
  }

  /// Weights and score gradients of a block, transposed [keys, queries], as pieces of left operands; the
  /// latter also turned round.
  DSPLAN_TILE_TARGET void weigh(std::int64_t i, bool diagonal, std::int64_t p) {
    const __m512 exponent_scale = _mm512_set1_ps(extent_.exponent_scale),
                 scale = _mm512_set1_ps(extent_.scale);
    char* const weights = weights_ + p * piece_bytes;
    char* const gradients = score_gradients_ + p * piece_bytes;
    for (std::int64_t key = 0; key < panel; ++key) {
      __m512 weight[2], gradient[2];
      for (std::int64_t half = 0; half < 2; ++half) {
        const float* exponents = exponents_ + i * panel + half * 16;
        const float* dots = dots_ + i * panel + half * 16;
        const __m512 exponent = _mm512_fmsub_ps(_mm512_load_ps(at(scores_, key, half)), exponent_scale,
                                                _mm512_load_ps(exponents));
        weight[half] = power_of_two(exponent);
        if (diagonal) weight[half] = _mm512_maskz_mov_ps(not_before(key, half * 16), weight[half]);
        gradient[half] = _mm512_mul_ps(
            _mm512_sub_ps(_mm512_load_ps(at(weight_gradients_, key, half)), _mm512_load_ps(dots)),
            _mm512_mul_ps(weight[half], scale));
      }
      _mm512_store_si512(weights + key * 64, (__m512i)_mm512_cvtne2ps_pbh(weight[1], weight[0]));
      _mm512_store_si512(gradients + key * 64, (__m512i)_mm512_cvtne2ps_pbh(gradient[1], gradient[0]));
    }
    pack_from_depth(reinterpret_cast<const c10::BFloat16*>(gradients), panel, panel, panel, false, turned_);
  }

  void store(const float* sums, const HeadMatrix& to, std::int64_t at_panel, std::int64_t rows) {
    store_rows(sums, rows, extent_, to.data + at_panel * panel * to.stride, to.stride);
  }

  const Extent& extent_;
  ScratchRun scratch_;
  char *queries_, *gradients_, *queries_by_dim_, *gradients_by_dim_, *keys_, *values_, *keys_by_dim_;
  char *weights_, *score_gradients_, *turned_;
  float *query_sums_, *key_sums_, *value_sums_, *scores_, *weight_gradients_, *exponents_, *dots_;
};

/// body(kernel, head) for all heads; a kernel of each thread, with the registers configured.
template <class Kernel, class Body>
void for_heads(const at::Tensor& queries, Body body) {
  const Extent extent(queries);
  at::parallel_for(0, queries.size(0) * queries.size(1), 1, [&](std::int64_t begin, std::int64_t end) {
    Kernel kernel(extent);
    const RegistersInUse registers;
    for (std::int64_t head = begin; head < end; ++head) body(kernel, head);
  });
}

}  // namespace

bool goes_through_tiles(const TileAttention& inputs) {
  const auto fits = [](const at::Tensor& heads) {
    return heads.scalar_type() == at::kBFloat16 && heads.stride(3) == 1;
  };
  return has_tiles() && fits(inputs.queries) && fits(inputs.keys) && fits(inputs.values);
}

void attend_through_tiles(const TileAttention& inputs, const at::Tensor& output,
                          const at::Tensor& log_sum_exp) {
  float* const sums = log_sum_exp.data_ptr<float>();
  const std::int64_t length = inputs.queries.size(2);
  for_heads<ForwardHead>(inputs.queries, [&](ForwardHead& kernel, std::int64_t head) {
    kernel.run(head_of(inputs.queries, head), head_of(inputs.keys, head), head_of(inputs.values, head),
               head_of(output, head), sums + head * length);
  });
}

void attend_through_tiles_backward(const TileAttention& inputs, const at::Tensor& output,
                                   const at::Tensor& log_sum_exp, const at::Tensor& output_gradient,
                                   const TileAttention& gradients) {
  const float* const sums = log_sum_exp.const_data_ptr<float>();
  const std::int64_t length = inputs.queries.size(2);
  for_heads<BackwardHead>(inputs.queries, [&](BackwardHead& kernel, std::int64_t head) {
    kernel.run({head_of(inputs.queries, head), head_of(inputs.keys, head), head_of(inputs.values, head),
                head_of(output, head), head_of(output_gradient, head), sums + head * length,
                head_of(gradients.queries, head), head_of(gradients.keys, head),
                head_of(gradients.values, head)});
  });
}

#else

bool goes_through_tiles(const TileAttention&) { return false; }

void attend_through_tiles(const TileAttention&, const at::Tensor&, const at::Tensor&) {
  TORCH_INTERNAL_ASSERT(false, "no matrix registers here");
}

void attend_through_tiles_backward(const TileAttention&, const at::Tensor&, const at::Tensor&,
                                   const at::Tensor&, const TileAttention&) {
  TORCH_INTERNAL_ASSERT(false, "no matrix registers here");
}

#endif

}  // namespace runtime::kernels
