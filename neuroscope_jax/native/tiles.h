// y = x · weightᵀ for many rows of x, where the time is the arithmetic: products.h is for few, where it is the reading.
//
// A task takes kBlockRows rows of the weight. It writes kDepth columns of them out as panels, transposed and in float32,
// which stay in the second cache, and passes all rows of x over them, kTileRows at a time:
//
//     weight [kBlockRows, kDepth]  ─▶  panels [kDepth, kColumns]      y [kTileRows, kColumns] += x [kTileRows, kDepth] · panel
//
// The sums of a tile of y are in registers meanwhile. Each y is the same sum in the same order however many rows there
// are, and another than for few rows, by rounding.

#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include "crew.h"
#include "vectors.h"

namespace neuroscope {

constexpr int kVectors = 2, kColumns = kVectors * kLanes;
constexpr int kTileRows = (kRegisters - kVectors - 1) / kVectors;  // beside the sums, a row of the panel and one of x
constexpr int64_t kDepth = (24 << 10) / (sizeof(float) * kColumns);  // of a panel, which the first cache holds
constexpr int64_t kBlockRows = 128;
constexpr int64_t kLeastRows = 96;  // of x, for which a block is worth being written out once more

// The tile of y that kRows rows of x make with a panel, set where it `begins`, else added to. The `next` rows of x are
// fetched meanwhile: they are not where the processor would look for them.
template <int kRows>
void tile(const float* x, int64_t in, const float* panel, int64_t depth, float* y, int64_t out, int64_t columns,
          bool begins, bool next) {
  for (int r = 0; next && r < kRows; ++r) {
    for (int64_t k = 0; k < depth; k += 64 / sizeof(float)) __builtin_prefetch(x + (kRows + r) * in + k, 0, 2);
  }
  Floats sums[kRows][kVectors] = {};
  for (int64_t k = 0; k < depth; ++k) {
    Floats of_panel[kVectors];
    for (int v = 0; v < kVectors; ++v) of_panel[v] = load(panel + k * kColumns + v * kLanes);
    for (int r = 0; r < kRows; ++r) {
      Floats of_x = filled(x[r * in + k]);
      for (int v = 0; v < kVectors; ++v) sums[r][v] = multiply_add(of_x, of_panel[v], sums[r][v]);
    }
  }
  auto put = [&](int r, int v, int64_t count) {
    float* at = y + r * out + v * kLanes;
    if (!begins) sums[r][v] += load(at, count);
    std::memcpy(at, &sums[r][v], count * sizeof(float));
  };
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) {
      if (columns >= kColumns) put(r, v, kLanes);  // a number that the compiler knows
      else put(r, v, std::clamp<int64_t>(columns - v * kLanes, 0, kLanes));
    }
  }
}

using Tile = void (*)(const float*, int64_t, const float*, int64_t, float*, int64_t, int64_t, bool, bool);

// `tile` for a number of rows that is known only when it runs.
template <int... i>
Tile tile_of(int64_t rows, std::integer_sequence<int, i...>) {
  static constexpr Tile forms[] = {tile<i + 1>...};
  return forms[rows - 1];
}

// As many of a row of weights as a vector holds.
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

// Zeros where there are fewer than kColumns rows.
template <typename W>
void write_panel(const W* weight, int64_t in, int64_t rows, int64_t depth, float* panel) {
  int64_t k = 0;
  for (; k + kLanes <= depth; k += kLanes) {
    for (int64_t c = 0; c < kColumns; c += kLanes) {
      Floats block[kLanes] = {};
      for (int64_t i = 0; i < kLanes && c + i < rows; ++i) block[i] = widened(weight + (c + i) * in + k);
      transpose(block);
      for (int64_t i = 0; i < kLanes; ++i) std::memcpy(panel + (k + i) * kColumns + c, &block[i], sizeof block[i]);
    }
  }
  for (; k < depth; ++k) {
    for (int64_t c = 0; c < kColumns; ++c) panel[k * kColumns + c] = c < rows ? as_float(weight[c * in + k]) : 0.0f;
  }
}

// The rows of x as floats, which they may be already.
template <typename X>
class Wide {
 public:
  Wide(Threads& threads, const X* x, int64_t rows, int64_t in) : copy_(new float[rows * in]) {
    Crew::run(threads, rows, [&](int64_t r) {
      for (int64_t i = r * in; i < (r + 1) * in; ++i) copy_[i] = as_float(x[i]);
    });
  }
  const float* data() const { return copy_.get(); }

 private:
  std::unique_ptr<float[]> copy_;
};
template <>
class Wide<float> {
 public:
  Wide(Threads&, const float* x, int64_t, int64_t) : x_(x) {}
  const float* data() const { return x_; }

 private:
  const float* x_;
};

// The rows of a task, in whole tiles: all of x, but parts of it where threads would have no block of their own.
inline int64_t rows_a_task(const Threads& threads, int64_t rows, int64_t blocks) {
  int64_t parts = std::clamp<int64_t>(4 * threads.count() / std::max<int64_t>(blocks, 1), 1, (rows - 1) / kLeastRows + 1);
  int64_t tiles = (rows + kTileRows - 1) / kTileRows;
  return (tiles + parts - 1) / parts * kTileRows;
}

template <typename W>
void block_in_tiles(const float* x, const W* weight, int64_t rows, int64_t in, int64_t count, float* y, int64_t out) {
  struct alignas(64) Panels {
    float at[kBlockRows * kDepth];
  };
  std::unique_ptr<Panels> panels(new Panels);
  int64_t k = 0;
  do {  // once where there is nothing to add up, for the zeros
    int64_t depth = std::min(in - k, kDepth);
    for (int64_t c = 0; c < count; c += kColumns)
      write_panel(weight + c * in + k, in, count - c, depth, panels->at + c * depth);
    for (int64_t r = 0; r < rows; r += kTileRows) {
      Tile form = tile_of(std::min<int64_t>(rows - r, kTileRows), std::make_integer_sequence<int, kTileRows>());
      bool next = r + 2 * kTileRows <= rows;
      for (int64_t c = 0; c < count; c += kColumns)
        form(x + r * in + k, in, panels->at + c * depth, depth, y + r * out + c, out, count - c, k == 0,
             next && c == 0);
    }
  } while ((k += kDepth) < in);
}

template <typename X, typename W>
void product_in_tiles(Threads& threads, const X* x, const W* weight, int64_t rows, int64_t in, int64_t out, float* y) {
  const Wide<X> wide(threads, x, rows, in);
  int64_t blocks = (out + kBlockRows - 1) / kBlockRows, each = rows_a_task(threads, rows, blocks);
  Crew::run(threads, blocks * ((rows + each - 1) / each), [&](int64_t task) {
    int64_t o = task % blocks * kBlockRows, r = task / blocks * each;
    block_in_tiles(wide.data() + r * in, weight + o * in, std::min(rows - r, each), in, std::min(out - o, kBlockRows),
                   y + r * out + o, out);
  });
}

}  // namespace neuroscope
