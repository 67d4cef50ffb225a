// y = x · weightᵀ for many rows of x, where the time is the arithmetic: products.h is for few, where it is the reading.
//
// Both are written out as panels of floats, kDepth columns at a time: of x kTileRows rows side by side, once, and of the
// weight kColumns rows, by the task that takes kBlockRows of them and keeps their panels in the second cache. A tile of y
// is in registers while a panel of each goes by, in the order in which they lie:
//
//     y [kTileRows, kColumns] += x's panel [depth, kTileRows]ᵀ · weight's panel [depth, kColumns]
//
// Each y is the same sum in the same order however many rows there are, and another than for few rows, by rounding.

#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>

#include "crew.h"
#include "vectors.h"

namespace neuroscope {

constexpr int kVectors = 2, kColumns = kVectors * kLanes;
constexpr int kTileRows = (kRegisters - kVectors - 1) / kVectors;  // beside the sums, a row of the panel and one of x
constexpr int64_t kDepth = (24 << 10) / (sizeof(float) * kColumns);  // of a panel, which the first cache holds
constexpr int64_t kBlockRows = 128;
static_assert(kBlockRows % kColumns == 0);
constexpr int64_t kLeastRows = 96;  // of x, for which a block is worth being written out once more

inline int64_t whole_tiles(int64_t rows) { return (rows + kTileRows - 1) / kTileRows * kTileRows; }

using Sums = Floats[kTileRows][kVectors];

inline void put(const Sums& sums, float* y, int64_t out, bool begins) {
  for (int r = 0; r < kTileRows; ++r) {
    for (int v = 0; v < kVectors; ++v) {
      float* at = y + r * out + v * kLanes;
      Floats sum = begins ? sums[r][v] : sums[r][v] + load(at);
      std::memcpy(at, &sum, sizeof sum);
    }
  }
}

// The product of two panels, set where a sum `begins`, else added to y, of which `rows` and `columns` are there.
inline void tile(const float* of_x, const float* of_weight, int64_t depth, float* y, int64_t out, int64_t rows,
                 int64_t columns, bool begins) {
  for (int64_t r = 0; r < std::min<int64_t>(rows, kTileRows); ++r) __builtin_prefetch(y + r * out, 1);
  Sums sums = {};
  for (int64_t k = 0; k < depth; ++k) {
    Floats weights[kVectors];
    for (int v = 0; v < kVectors; ++v) weights[v] = load(of_weight + k * kColumns + v * kLanes);
    for (int r = 0; r < kTileRows; ++r) {
      Floats one = filled(of_x[k * kTileRows + r]);
      for (int v = 0; v < kVectors; ++v) sums[r][v] = multiply_add(one, weights[v], sums[r][v]);
    }
  }
  if (rows >= kTileRows && columns >= kColumns) return put(sums, y, out, begins);
  float edge[kTileRows][kColumns];
  put(sums, edge[0], kColumns, true);
  for (int64_t r = 0; r < std::min<int64_t>(rows, kTileRows); ++r) {
    for (int64_t c = 0; c < std::min<int64_t>(columns, kColumns); ++c)
      y[r * out + c] = begins ? edge[r][c] : y[r * out + c] + edge[r][c];
  }
}

// As many of a row as a vector holds.
inline Floats widened(const float* p) { return load(p); }
inline Floats widened(const BFloat16* p) {
  typedef uint16_t Bits __attribute__((vector_size(2 * kLanes)));
  Bits bits;
  std::memcpy(&bits, p, sizeof bits);
  return reinterpret_cast<Floats>(__builtin_convertvector(bits, Words) << 16);
}

// kLanes vectors as a matrix. The second form is slow, and for vectors that no build makes tiles of so far.
inline void transpose(Floats (&rows)[kLanes]) {
#if defined(__AVX__) && !defined(__AVX512F__)
  Floats pairs[8], fours[8];
  for (int i = 0; i < 8; i += 2) {
    pairs[i] = _mm256_unpacklo_ps(rows[i], rows[i + 1]);
    pairs[i + 1] = _mm256_unpackhi_ps(rows[i], rows[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    for (int half = 0; half < 2; ++half) {
      fours[i + 2 * half] = _mm256_shuffle_ps(pairs[i + half], pairs[i + half + 2], 0x44);
      fours[i + 2 * half + 1] = _mm256_shuffle_ps(pairs[i + half], pairs[i + half + 2], 0xee);
    }
  }
  for (int i = 0; i < 4; ++i) {
    rows[i] = _mm256_permute2f128_ps(fours[i], fours[i + 4], 0x20);
    rows[i + 4] = _mm256_permute2f128_ps(fours[i], fours[i + 4], 0x31);
  }
#else
  for (int i = 0; i < kLanes; ++i) {
    for (int j = 0; j < i; ++j) {
      float there = rows[i][j];
      rows[i][j] = rows[j][i];
      rows[j][i] = there;
    }
  }
#endif
}

// `rows` rows side by side, column by column, zeros where they are fewer than kWidth.
template <int kWidth, typename T>
void write_panel(const T* from, int64_t stride, int64_t rows, int64_t depth, float* panel) {
  int64_t k = 0;
  for (; k + kLanes <= depth; k += kLanes) {
    for (int64_t c = 0; c < kWidth; c += kLanes) {
      Floats block[kLanes] = {};
      int64_t there = std::clamp<int64_t>(std::min<int64_t>(rows, kWidth) - c, 0, kLanes);
      for (int64_t i = 0; i < there; ++i) block[i] = widened(from + (c + i) * stride + k);
      transpose(block);
      constexpr int64_t kLast = (kWidth - 1) % kLanes + 1;  // of the vectors of a column
      for (int64_t i = 0; i < kLanes; ++i) {
        float* to = panel + (k + i) * kWidth + c;
        if (c + kLanes <= kWidth) std::memcpy(to, &block[i], sizeof block[i]);
        else std::memcpy(to, &block[i], kLast * sizeof(float));
      }
    }
  }
  for (; k < depth; ++k) {
    for (int64_t c = 0; c < kWidth; ++c) panel[k * kWidth + c] = c < rows ? as_float(from[c * stride + k]) : 0.0f;
  }
}

// The panels of x, in the room that there is for them: those of all rows' first kDepth columns, then those of the next.
class RowPanels {
 public:
  template <typename X>
  RowPanels(Threads& threads, const X* x, int64_t rows, int64_t in, float* room)
      : rows_(whole_tiles(rows)), in_(in), room_(room) {
    Crew::run(threads, rows_ / kTileRows, [&](int64_t task) {
      int64_t r = task * kTileRows;
      for (int64_t k = 0; k < in; k += kDepth) write_panel<kTileRows>(x + r * in + k, in, rows - r, depth(k), at(r, k));
    });
  }
  int64_t depth(int64_t k) const { return std::min(in_ - k, kDepth); }
  float* at(int64_t r, int64_t k) const { return room_ + k * rows_ + r * depth(k); }  // of whole tiles and depths

 private:
  const int64_t rows_, in_;
  float* const room_;
};

// The rows of a task, in whole tiles: all of x, but parts of it where threads would have no block of their own.
inline int64_t rows_a_task(const Threads& threads, int64_t rows, int64_t blocks) {
  int64_t parts = std::clamp<int64_t>(4 * threads.count() / std::max<int64_t>(blocks, 1), 1, (rows - 1) / kLeastRows + 1);
  return whole_tiles((rows + parts - 1) / parts);
}

// Rows `begin` to `end` of y, `count` of its columns.
template <typename W>
void block_in_tiles(const RowPanels& x, const W* weight, int64_t begin, int64_t end, int64_t in, int64_t count, float* y,
                    int64_t out) {
  struct alignas(64) Panels {
    float at[kBlockRows * kDepth];
  };
  std::unique_ptr<Panels> panels(new Panels);
  for (int64_t k = 0; k < in; k += kDepth) {
    int64_t depth = x.depth(k);
    for (int64_t c = 0; c < count; c += kColumns)
      write_panel<kColumns>(weight + c * in + k, in, count - c, depth, panels->at + c * depth);
    for (int64_t r = begin; r < end; r += kTileRows) {
      for (int64_t c = 0; c < count; c += kColumns)
        tile(x.at(r, k), panels->at + c * depth, depth, y + r * out + c, out, end - r, count - c, k == 0);
    }
  }
}

}  // namespace neuroscope
