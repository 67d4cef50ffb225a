// Tiles of bfloat16 in the registers that hold whole matrices (AMX): one instruction multiplies 16 rows with 16 columns,
// 32 deep, and adds up in float32. What it takes and makes that is smaller than a normal float32 counts as 0.
//
//     x's panel, 32 deep           the weight's panel, 32 deep      y
//     two of 16 rows               two of 16 columns, pair by pair  [32, 32]
//     ┌ row 0: k 0, 1, 2, … 31 ┐   ┌ k 0, 1 of column 0, 1, … 15 ┐  ┌ 0 │ 1 ┐
//     │ row 1: …               │   │ k 2, 3 of column 0, 1, … 15 │  ├───┼───┤
//     └ …                      ┘   └ …                           ┘  └ 2 │ 3 ┘
//
// A float32 is the sum of three bfloat16, 8 of its 24 bits in each, so of float32 rows or columns a step is there three
// times: a float32 with a bfloat16 is three products, which lose nothing of what is finite and normal and are quicker than
// one of floats. What is infinite may become NaN, by its parts that are 0.

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
  constexpr long kRequest = 0x1023, kTileData = 18;
  static const bool granted = syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
  return granted;
}

template <typename T>
constexpr int kParts = std::is_same_v<T, float> ? 3 : 1;

template <typename X, typename W>
class MatrixTiles {
  static constexpr int kSide = 16, kPairs = 16;
  static constexpr int kRowBytes = 64;
  typedef uint16_t Bits __attribute__((vector_size(2 * kLanes)));
  static constexpr int64_t kHalf = kSide * 2 * kPairs;  // of a panel, a step deep: what a register holds

 public:
  using Element = BFloat16;
  static constexpr int kRows = 2 * kSide, kColumns = 2 * kSide;
  static constexpr int kStep = 2 * kPairs;
  static constexpr int kRowParts = kParts<X>, kColumnParts = kParts<W>;
  static constexpr int64_t kFewRows = 24;  // for which products.h is quicker
  static constexpr int64_t kBlock = 192, kDepth = 768, kDepths = 3 / kColumnParts;  // half the second cache

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
    for (int64_t k = 0; k < depth; k += kStep, panel += kRowParts * 2 * kHalf) {
      for (int64_t r = 0; r < kRows; ++r) {
        Floats parts[kRowParts] = {};
        if (r < rows) take_apart(from + r * stride + k, std::min<int64_t>(depth - k, kStep), parts);
        for (int i = 0; i < kRowParts; ++i) std::memcpy(panel + i * 2 * kHalf + r * kStep, &parts[i], kRowBytes);
      }
    }
  }

  static void write_columns(const W* from, int64_t stride, int64_t columns, int64_t depth, BFloat16* panel) {
    for (int64_t k = 0; k < depth; k += kStep, panel += kColumnParts * 2 * kHalf) {
      for (int64_t c = 0; c < kColumns; c += kSide) {
        Floats pairs[kColumnParts][kSide] = {}, parts[kColumnParts];
        for (int64_t i = 0; i < std::clamp<int64_t>(columns - c, 0, kSide); ++i) {
          take_apart(from + (c + i) * stride + k, std::min<int64_t>(depth - k, kStep), parts);
          for (int p = 0; p < kColumnParts; ++p) pairs[p][i] = parts[p];
        }
        for (int p = 0; p < kColumnParts; ++p) {
          transpose(pairs[p]);
          std::memcpy(panel + p * 2 * kHalf + c / kSide * kHalf, pairs[p], sizeof pairs[p]);
        }
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
    for (int64_t k = 0; k < depth; k += kStep, of_x += kRowParts * 2 * kHalf) {
      for (int part = 0; part < kColumnParts; ++part, of_weight += 2 * kHalf) {
        _tile_loadd(6, of_weight, kRowBytes);
        _tile_loadd(7, of_weight + kHalf, kRowBytes);
        for (int i = 0; i < kRowParts; ++i) {
          _tile_loadd(4, of_x + i * 2 * kHalf, kRowBytes);
          _tile_loadd(5, of_x + i * 2 * kHalf + kHalf, kRowBytes);
          _tile_dpbf16ps(0, 4, 6);
          _tile_dpbf16ps(1, 4, 7);
          _tile_dpbf16ps(2, 5, 6);
          _tile_dpbf16ps(3, 5, 7);
        }
      }
    }
    _tile_stored(0, y, row);
    _tile_stored(1, y + kSide, row);
    _tile_stored(2, below, row);
    _tile_stored(3, below + kSide, row);
  }

 private:
  // `count` of a row, zeros behind them.
  static void take_apart(const BFloat16* from, int64_t count, Floats (&parts)[1]) { parts[0] = load(from, count); }

  // Of int8 every value is a bfloat16.
  static void take_apart(const Int8* from, int64_t count, Floats (&parts)[1]) {
    Int8 there[kStep] = {};
    std::memcpy(there, from, count);
    for (int64_t i = 0; i < kStep; i += kLanes) {
      Bits bits = __builtin_convertvector(reinterpret_cast<Words>(widened(there + i)) >> 16, Bits);
      std::memcpy(reinterpret_cast<BFloat16*>(&parts[0]) + i, &bits, sizeof bits);
    }
  }

  // Parts are cut off, not rounded: none is infinite unless the whole is.
  static void take_apart(const float* from, int64_t count, Floats (&parts)[3]) {
    for (int64_t i = 0; i < kStep; i += kLanes) {
      Floats rest = load(from + i, std::clamp<int64_t>(count - i, 0, kLanes));
      for (int p = 0; p < 3; ++p) {
        Words words = reinterpret_cast<Words>(rest);
        Bits bits = __builtin_convertvector(words >> 16, Bits);
        std::memcpy(reinterpret_cast<BFloat16*>(&parts[p]) + i, &bits, sizeof bits);
        rest = rest - reinterpret_cast<Floats>(words & 0xffff0000u);
        rest = rest == rest ? rest : Floats{};  // of what is not finite
      }
    }
  }

  // GCC does not know what these instructions read: whatever is to be written must be so before them.
  static void written() { __asm__ volatile("" : : : "memory"); }
};

}  // namespace neuroscope
#endif
