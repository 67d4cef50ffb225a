// out = gelu(gate) · up, GELU by its tanh form; computed in float32, one rounding at the end. XLA:CPU takes three to four
// times as long, most of it for the tanh.

#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "crew.h"
#include "kernels.h"
#include "vectors.h"

namespace neuroscope {

// x / (1 + e^-2u) is x/2 · (1 + tanh u). Both ends of float32 are kept away from: below -10 it is at most 1e-37, not 0.
inline Floats gelu(Floats x) {
  x = x < filled(-14.0f) ? filled(-14.0f) : x;
  Floats twice = -1.5957691216f * x * multiply_add(0.044715f * x, x, filled(1.0f));  // -2u
  return x / (1.0f + exp(twice > filled(88.0f) ? filled(88.0f) : twice));
}

inline void store(float* at, Floats x, int64_t count) { std::memcpy(at, &x, count * sizeof *at); }

// To the nearest, ties to even; NaN stays one.
inline void store(BFloat16* at, Floats x, int64_t count) {
  Words bits = reinterpret_cast<Words>(x);
  Words rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
  rounded = x == x ? rounded : Words{} + 0x7fc0u;
  typedef uint16_t Shorts __attribute__((vector_size(2 * kLanes)));
  Shorts shorts = __builtin_convertvector(rounded, Shorts);
  std::memcpy(at, &shorts, count * sizeof *at);
}

template <typename W>
void gated(Threads& threads, const float* gate, const float* up, int64_t count, W* out) {
  constexpr int64_t each = 1 << 14;
  Crew::run(threads, (count + each - 1) / each, [&](int64_t task) {
    int64_t i = task * each, end = std::min(count, i + each);
    for (; i + kLanes <= end; i += kLanes) store(out + i, gelu(load(gate + i)) * load(up + i), kLanes);
    if (i < end) store(out + i, gelu(load(gate + i, end - i)) * load(up + i, end - i), end - i);
  });
}

}  // namespace neuroscope
