// Tiles of floats: a tile of y is in vector registers while a panel of x and one of the weight go by.
//
//     y [kRows, kColumns] += x's panel [depth, kRows]ᵀ · weight's panel [depth, kColumns]

#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "vectors.h"

namespace neuroscope {

// kLanes vectors as a matrix. The last form is slow, and for vectors that no build makes tiles of so far.
inline void transpose(Floats (&rows)[kLanes]) {
#if defined(__AVX512F__)
  Floats pairs[16], fours[16];
  for (int i = 0; i < 16; i += 2) {
    pairs[i] = _mm512_unpacklo_ps(rows[i], rows[i + 1]);
    pairs[i + 1] = _mm512_unpackhi_ps(rows[i], rows[i + 1]);
  }
  for (int i = 0; i < 16; i += 4) {
    for (int half = 0; half < 2; ++half) {
      fours[i + 2 * half] = _mm512_shuffle_ps(pairs[i + half], pairs[i + half + 2], 0x44);
      fours[i + 2 * half + 1] = _mm512_shuffle_ps(pairs[i + half], pairs[i + half + 2], 0xee);
    }
  }
  for (int i = 0; i < 4; ++i) {  // of each vector here, four lanes are of four rows each
    Floats even[2], odd[2];
    for (int half = 0; half < 2; ++half) {
      even[half] = _mm512_shuffle_f32x4(fours[i + 8 * half], fours[i + 8 * half + 4], 0x88);
      odd[half] = _mm512_shuffle_f32x4(fours[i + 8 * half], fours[i + 8 * half + 4], 0xdd);
    }
    rows[i] = _mm512_shuffle_f32x4(even[0], even[1], 0x88);
    rows[i + 4] = _mm512_shuffle_f32x4(odd[0], odd[1], 0x88);
    rows[i + 8] = _mm512_shuffle_f32x4(even[0], even[1], 0xdd);
    rows[i + 12] = _mm512_shuffle_f32x4(odd[0], odd[1], 0xdd);
  }
#elif defined(__AVX__)
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

class VectorTiles {
  static constexpr int kVectors = 2;

 public:
  using Element = float;
  struct Session {};
  static constexpr int kColumns = kVectors * kLanes;
  static constexpr int kRows = (kRegisters - kVectors - 1) / kVectors;  // beside the sums, a row of the panel and one of x
  static constexpr int kStep = 1, kRowParts = 1, kColumnParts = 1;
  static constexpr int64_t kFewRows = 48;  // for which products.h is quicker
  static constexpr int64_t kBlock = 128, kDepths = 1;
  static constexpr int64_t kDepth = (24 << 10) / (sizeof(float) * kColumns);  // of a panel, which the first cache holds

  template <typename T>
  static void write_rows(const T* from, int64_t stride, int64_t rows, int64_t depth, float* panel) {
    write<kRows>(from, stride, rows, depth, panel);
  }
  template <typename T>
  static void write_columns(const T* from, int64_t stride, int64_t columns, int64_t depth, float* panel) {
    write<kColumns>(from, stride, columns, depth, panel);
  }

  // The product of two panels, set where a sum `begins`, else added to y.
  static void tile(const float* of_x, const float* of_weight, int64_t depth, float* y, int64_t out, bool begins) {
    for (int64_t r = 0; r < kRows; ++r) __builtin_prefetch(y + r * out, 1);
    Floats sums[kRows][kVectors] = {};
    for (int64_t k = 0; k < depth; ++k) {
      Floats weights[kVectors];
      for (int v = 0; v < kVectors; ++v) weights[v] = load(of_weight + k * kColumns + v * kLanes);
      for (int r = 0; r < kRows; ++r) {
        Floats one = filled(of_x[k * kRows + r]);
        for (int v = 0; v < kVectors; ++v) sums[r][v] = multiply_add(one, weights[v], sums[r][v]);
      }
    }
    for (int r = 0; r < kRows; ++r) {
      for (int v = 0; v < kVectors; ++v) {
        float* at = y + r * out + v * kLanes;
        Floats sum = begins ? sums[r][v] : sums[r][v] + load(at);
        std::memcpy(at, &sum, sizeof sum);
      }
    }
  }

 private:
  // `rows` rows side by side, column by column, zeros where they are fewer than kWidth.
  template <int kWidth, typename T>
  static void write(const T* from, int64_t stride, int64_t rows, int64_t depth, float* panel) {
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
};

}  // namespace neuroscope
