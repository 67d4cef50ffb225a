// y = x · weightᵀ for weights of 4 bits: rows of signed nibbles, two a byte, and a bfloat16 scale for each kGroup of them.
//
// A vector of 32-bit words holds 8 nibbles a lane. They are taken out place by place, so x lies in that order; their sum is
// a lane's own until the lane's scale multiplies it. As in products.h each y is the same sum however many rows there are.

#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "crew.h"
#include "dots.h"

namespace neuroscope {

constexpr int kGroup = 32;                       // columns that share a scale
constexpr int kInAWord = 8;                      // nibbles
constexpr int kColumns = kLanes * kInAWord;      // of one step
constexpr int kScales = kColumns / kGroup;       // of one step
constexpr int kLanesAScale = kLanes / kScales;

struct Grouped {
  const Int8* values;  // [out, groups · kGroup / 2]
  const BFloat16* scales;  // [out, groups]
  int64_t groups;

  const Int8* row(int64_t o) const { return values + o * groups * (kGroup / 2); }
  const BFloat16* scales_of(int64_t o) const { return scales + o * groups; }
};

// x in float32, filled up with zeros to whole steps; a step:  0 1 2 3 4 …   ─▶   0 8 16 … 1 9 17 …
template <typename X>
std::vector<float> by_place(const X* x, int64_t rows, int64_t in, int64_t stride) {
  std::vector<float> laid(rows * stride);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = 0; i < in; ++i) {
      int64_t within = i % kColumns;
      laid[r * stride + i - within + within / kInAWord + within % kInAWord * kLanes] = as_float(x[r * in + i]);
    }
  }
  return laid;
}

// The scale of each lane, 0 past the last of `count`.
inline Floats spread(const BFloat16* scales, int64_t count) {
  float lanes[kLanes] = {};
  for (int s = 0; s < kScales && s < count; ++s) std::fill_n(lanes + s * kLanesAScale, kLanesAScale, as_float(scales[s]));
  return load(lanes);
}

template <int kRows, int kPlace = 0>
void add_nibbles(Floats words, const float* x, int64_t stride, Floats* sums) {
  Integers nibbles = reinterpret_cast<Integers>(reinterpret_cast<Words>(words) << (28 - 4 * kPlace)) >> 28;
  Floats values = __builtin_convertvector(nibbles, Floats);
  for (int r = 0; r < kRows; ++r) sums[r] = multiply_add(values, load(x + r * stride + kPlace * kLanes), sums[r]);
  if constexpr (kPlace + 1 < kInAWord) add_nibbles<kRows, kPlace + 1>(words, x, stride, sums);
}

template <int kRows, int kWeights>
void grouped_dot(const float* x, int64_t stride, const Grouped& weight, int64_t o, float* y, int64_t out) {
  Floats sums[kWeights][kRows] = {};
  for (int64_t g = 0; g < weight.groups; g += kScales) {
    int64_t count = std::min<int64_t>(kScales, weight.groups - g);
    for (int w = 0; w < kWeights; ++w) {
      const Int8* at = weight.row(o + w) + g * (kGroup / 2);
      __builtin_prefetch(at + 1024, 0, 2);
      Floats words = load(at, count * (kGroup / 2)), scales = spread(weight.scales_of(o + w) + g, count);
      Floats unscaled[kRows] = {};
      add_nibbles<kRows>(words, x + g * kGroup, stride, unscaled);
      for (int r = 0; r < kRows; ++r) sums[w][r] = multiply_add(unscaled[r], scales, sums[w][r]);
    }
  }
  for (int w = 0; w < kWeights; ++w) {
    for (int r = 0; r < kRows; ++r) y[r * out + w] = sum(sums[w][r]);
  }
}

template <int kRows>
void grouped_dots(const float* x, int64_t stride, const Grouped& weight, int64_t o, int64_t end, float* y, int64_t out) {
  constexpr int kAtOnce = kRows <= 2 ? 4 : kRows <= 4 ? 2 : 1;
  for (; o + kAtOnce <= end; o += kAtOnce) grouped_dot<kRows, kAtOnce>(x, stride, weight, o, y + o, out);
  for (; o < end; ++o) grouped_dot<kRows, 1>(x, stride, weight, o, y + o, out);
}

using GroupedDots = void (*)(const float*, int64_t, const Grouped&, int64_t, int64_t, float*, int64_t);

template <int... i>
GroupedDots grouped_dots_of(int64_t rows, std::integer_sequence<int, i...>) {
  static constexpr GroupedDots forms[] = {grouped_dots<i + 1>...};
  return forms[rows - 1];
}

template <typename X>
void grouped_product(xla::ffi::ThreadPool& pool, const X* x, const Grouped& weight, int64_t rows, int64_t in, int64_t out,
                     float* y) {
  if (rows == 0) return;
  int64_t stride = (in + kColumns - 1) / kColumns * kColumns;
  const std::vector<float> laid = by_place(x, rows, in, stride);
  int64_t parts = (rows + kRowsAtOnce - 1) / kRowsAtOnce, part = (rows + parts - 1) / parts;
  constexpr int64_t kEach = 64;  // weight rows of one task
  Crew::run(pool, (out + kEach - 1) / kEach, [&, part, stride](int64_t task) {
    int64_t o = task * kEach, end = std::min(o + kEach, out);
    for (int64_t r = 0; r < rows; r += part) {
      auto form = grouped_dots_of(std::min(part, rows - r), std::make_integer_sequence<int, kRowsAtOnce>());
      form(laid.data() + r * stride, stride, weight, o, end, y + r * out, out);
    }
  });
}

}  // namespace neuroscope
