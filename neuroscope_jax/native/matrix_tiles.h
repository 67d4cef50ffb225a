// Tiles of bfloat16 in the registers that hold whole matrices (AMX): one instruction multiplies 16 rows with 16 columns,
// 32 deep, and adds up in float32. What it takes and makes that is smaller than a normal float32 counts as 0.
//
//     x's panel, 32 deep           the weight's panel, 32 deep      y
//     two of 16 rows               two of 16 columns, pair by pair  [32, 32]
//     ┌ row 0: k 0, 1, 2, … 31 ┐   ┌ k 0, 1 of column 0, 1, … 15 ┐  ┌ 0 │ 1 ┐
//     │ row 1: …               │   │ k 2, 3 of column 0, 1, … 15 │  ├───┼───┤
//     └ …                      ┘   └ …                           ┘  └ 2 │ 3 ┘
//
// A float32 x is the sum of three bfloat16, 8 of its 24 bits in each, and its panel has each step three times: a product
// with bfloat16 weights loses nothing by that, and three of these are quicker than one of floats.

#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "vector_tiles.h"

#if defined(__AMX_BF16__) && defined(__AVX512F__) && defined(__linux__)
#define NEUROSCOPE_MATRIX_TILES
#include <sys/syscall.h>
#include <unistd.h>

namespace neuroscope {

// Linux gives the registers to a process that asks.
inline bool matrices_permitted() {
  constexpr int kRequest = 0x1023, kTileData = 18;
  static const bool granted = syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
  return granted;
}

template <typename X>
class MatrixTiles {
  static constexpr int kSide = 16, kPairs = 16;
  static constexpr int kRowBytes = 64;
  static constexpr int64_t kHalf = kSide * 2 * kPairs;  // of a panel, a step deep: what a register holds

 public:
  using Element = BFloat16;
  static constexpr int kRows = 2 * kSide, kColumns = 2 * kSide;
  static constexpr int kStep = 2 * kPairs;
  static constexpr int kParts = std::is_same_v<X, float> ? 3 : 1;
  static constexpr int64_t kBlock = 192, kDepth = 768, kDepths = 3;  // a block's panels take half the second cache

  // The registers as a thread needs them, for as long as this is there.
  class Session {
   public:
    Session() {
      struct alignas(64) {
        uint8_t palette = 1, start = 0, reserved[14] = {};
        uint16_t row_bytes[16] = {};
        uint8_t rows[16] = {};
      } shapes;
      std::fill_n(shapes.row_bytes, 8, kRowBytes);
      std::fill_n(shapes.rows, 8, kSide);
      written();
      _tile_loadconfig(&shapes);
    }
    ~Session() { _tile_release(); }
    Session(const Session&) = delete;
  };

  static void write_rows(const X* from, int64_t stride, int64_t rows, int64_t depth, BFloat16* panel) {
    for (int64_t k = 0; k < depth; k += kStep, panel += kParts * 2 * kHalf) {
      for (int64_t r = 0; r < kRows; ++r)
        write_row(from + r * stride + k, r < rows ? std::min<int64_t>(depth - k, kStep) : 0, panel + r * kStep);
    }
  }

  static void write_columns(const BFloat16* from, int64_t stride, int64_t columns, int64_t depth, BFloat16* panel) {
    for (int64_t k = 0; k < depth; k += kStep) {
      for (int64_t c = 0; c < kColumns; c += kSide, panel += kHalf) {
        Floats pairs[kSide] = {};
        for (int64_t i = 0; i < std::clamp<int64_t>(columns - c, 0, kSide); ++i)
          pairs[i] = load(from + (c + i) * stride + k, std::min<int64_t>(depth - k, kStep));
        transpose(pairs);
        std::memcpy(panel, pairs, sizeof pairs);
      }
    }
  }

  // The product of two panels, set where a sum `begins`, else added to y.
  static void tile(const BFloat16* of_x, const BFloat16* of_weight, int64_t depth, float* y, int64_t out, bool begins) {
    const int64_t row = out * sizeof(float);
    float* below = y + kSide * out;
    written();
    if (begins) {
      _tile_zero(0);
      _tile_zero(1);
      _tile_zero(2);
      _tile_zero(3);
    } else {
      _tile_loadd(0, y, row);
      _tile_loadd(1, y + kSide, row);
      _tile_loadd(2, below, row);
      _tile_loadd(3, below + kSide, row);
    }
    for (int64_t k = 0; k < depth; k += kStep, of_weight += 2 * kHalf) {
      _tile_loadd(6, of_weight, kRowBytes);
      _tile_loadd(7, of_weight + kHalf, kRowBytes);
      for (int part = 0; part < kParts; ++part, of_x += 2 * kHalf) {
        _tile_loadd(4, of_x, kRowBytes);
        _tile_loadd(5, of_x + kHalf, kRowBytes);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
      }
    }
    _tile_stored(0, y, row);
    _tile_stored(1, y + kSide, row);
    _tile_stored(2, below, row);
    _tile_stored(3, below + kSide, row);
  }

 private:
  static void write_row(const BFloat16* from, int64_t count, BFloat16* to) {
    Floats pairs = load(from, count);
    std::memcpy(to, &pairs, sizeof pairs);
  }

  // Parts are cut off, not rounded: none is infinite unless the whole is.
  static void write_row(const float* from, int64_t count, BFloat16* to) {
    typedef uint16_t Bits __attribute__((vector_size(2 * kLanes)));
    for (int64_t i = 0; i < kStep; i += kLanes, from += kLanes, to += kLanes) {
      Floats rest = load(from, std::clamp<int64_t>(count - i, 0, kLanes));
      for (int part = 0; part < kParts; ++part) {
        Words words = reinterpret_cast<Words>(rest);
        Bits bits = __builtin_convertvector(words >> 16, Bits);
        std::memcpy(to + part * 2 * kHalf, &bits, sizeof bits);
        rest = rest - reinterpret_cast<Floats>(words & 0xffff0000u);
        rest = rest == rest ? rest : Floats{};  // of what is infinite
      }
    }
  }

  // Compilers do not know what these instructions read: whatever is to be written must be so before them.
  static void written() { __asm__ volatile("" : : : "memory"); }
};

}  // namespace neuroscope
#endif
