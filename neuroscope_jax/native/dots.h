// The dot products of up to kRowsAtOnce rows of x, `stride` apart, with rows of weights, `pitch` apart.

#pragma once

#include <cstdint>
#include <utility>

#include "vectors.h"

namespace neuroscope {

template <typename P>
constexpr int kRowsAtOnce = 8;  // of what x is multiplied as

// Several weight rows at a time, as many as leave room for their sums: reads of one row alone do not fill the memory bus.
// Meanwhile those that come next, so far `ahead`, are fetched; behind the last ones there is nothing to fetch, since what
// lies there is another task's, and memory would be read twice.
template <int kRows, typename P>
constexpr int kWeights = (kRows <= 3 ? 8 : kRows == 4 ? 6 : 4) / (kRegisters == 16 ? 2 : 1);

template <int kRows, int kWeights, typename W, typename P>
void dot(const P* x, int64_t stride, const W* weight, int64_t pitch, int64_t in, float* y, int64_t out,
         int64_t ahead = 0) {
  constexpr int64_t kLine = 64 / sizeof(W);  // of the cache: what one prefetch brings
  Floats sums[kWeights][kRows] = {};
  auto step = [&](int w, int64_t at) {
    Floats of_weight = load(weight + w * pitch + at);
    for (int r = 0; r < kRows; ++r) sums[w][r] = multiply_add(of_weight, x + r * stride + at, sums[w][r], W());
  };
  int64_t i = 0;
  for (; i + kLine <= in; i += kLine) {
    for (int w = 0; w < kWeights; ++w) {
      __builtin_prefetch(weight + w * pitch + ahead + i, 0, 2);
      for (int64_t at = i; at < i + kLine; at += kStep<W>) step(w, at);
    }
  }
  for (; i + kStep<W> <= in; i += kStep<W>)
    for (int w = 0; w < kWeights; ++w) step(w, i);
  for (int w = 0; w < kWeights && i < in; ++w) {
    Floats of_weight = load(weight + w * pitch + i, in - i);
    for (int r = 0; r < kRows; ++r) sums[w][r] = multiply_add(of_weight, x + r * stride + i, sums[w][r], W());
  }
  for (int w = 0; w < kWeights; ++w) {
    for (int r = 0; r < kRows; ++r) y[r * out + w] = sum(sums[w][r]);
  }
}

template <int kRows, typename W, typename P>
void dots(const P* x, int64_t stride, const W* weight, int64_t pitch, int64_t in, int64_t count, float* y, int64_t out) {
  constexpr int kAtOnce = kWeights<kRows, P>;
  int64_t o = 0;
  for (; o + kAtOnce <= count; o += kAtOnce) {
    int64_t ahead = o + kAtOnce < count ? kAtOnce * pitch : 0;
    dot<kRows, kAtOnce>(x, stride, weight + o * pitch, pitch, in, y + o, out, ahead);
  }
  for (; o < count; ++o) dot<kRows, 1>(x, stride, weight + o * pitch, pitch, in, y + o, out);
}

template <typename W, typename P>
using Dots = void (*)(const P*, int64_t, const W*, int64_t, int64_t, int64_t, float*, int64_t);

// `dots` for a number of rows that is known only when it runs.
template <typename W, typename P, int... i>
Dots<W, P> dots_of(int64_t rows, std::integer_sequence<int, i...>) {
  static constexpr Dots<W, P> forms[] = {dots<i + 1, W, P>...};
  return forms[rows - 1];
}
template <typename W, typename P>
Dots<W, P> dots_of(int64_t rows) {
  return dots_of<W, P>(rows, std::make_integer_sequence<int, kRowsAtOnce<P>>());
}

}  // namespace neuroscope
