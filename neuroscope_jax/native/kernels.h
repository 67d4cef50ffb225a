// The kernels as they are called from here; float32.cc, bfloat16.cc, tiles.cc and int8.cc hold them, which are compiled
// at the same time.

#pragma once

#include <algorithm>
#include <cstdint>

#include "crew.h"

namespace neuroscope {

struct BFloat16 {
  uint16_t bits;
};
struct Int8 {
  int8_t value;
};

// y [rows, out] = x [rows, in] · weight [out, in]ᵀ, each column times its scale where there are scales; see products.h.
template <typename X, typename W>
void product(Threads& threads, const X* x, const W* weight, int64_t rows, int64_t in, int64_t out, float* y,
             const float* scales = nullptr);

// The same, but for rounding, where there is room for as many floats as room_for_tiles says; see tiles.h.
template <typename X, typename W>
void product_in_tiles(Threads& threads, const X* x, const W* weight, int64_t rows, int64_t in, int64_t out, float* room,
                      float* y, const float* scales = nullptr);

// 0 where `product` is quicker, or this build has no tiles.
template <typename X, typename W>
int64_t room_for_tiles(int64_t rows, int64_t in);

// The same sums for one row of x where `wanted`, 0 elsewhere; the weights there are not read.
void product_where(Threads& threads, const float* x, const float* weight, const bool* wanted, int64_t in, int64_t out,
                   float* y);

// out [count] = gelu(gate) · up; see gated.h.
template <typename W>
void gated(Threads& threads, const float* gate, const float* up, int64_t count, W* out);

constexpr int64_t kBlock = 64;  // slots that attention takes together

// T queries of N heads at positions `start`, start + 1, …; K heads of keys and values of size H in S slots. Position p is
// in slot p % S: with a window, slots may be fewer than positions.
struct Shape {
  int64_t T, N, H, S, K, start;
  float scale, cap;  // no cap: 0
  int64_t window;    // none: 0

  int64_t rows() const { return T * N; }
  int64_t together() const { return T * (N / K); }  // rows that share a head of keys
  int64_t first(int64_t t) const { return window ? std::max<int64_t>(start + t - window + 1, 0) : 0; }
  int64_t end(int64_t t) const { return start + t + 1; }
  bool fits() const {
    bool goes_round = window && S % kBlock == 0 && window + T <= S;
    return start >= 0 && (end(T - 1) <= S || goes_round);
  }
  int64_t first_block() const { return first(0) / kBlock; }
  int64_t blocks() const { return (end(T - 1) + kBlock - 1) / kBlock - first_block(); }
  // Rows lie head of keys by head of keys: [K, T, N / K].
  int64_t time_of(int64_t row) const { return row / (N / K) % T; }
  int64_t at(int64_t row) const { return (time_of(row) * N + row / together() * (N / K) + row % (N / K)) * H; }
};

// query and out [T, N, H], key and value [S, K, H]; see attention.h.
template <typename W>
void attend(Threads& threads, const Shape& shape, const W* query, const W* key, const W* value, float* out);

}  // namespace neuroscope
