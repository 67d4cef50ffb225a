// y = x · weightᵀ for weights as checkpoints keep them, [out, in], float32 or bfloat16; y and its sums are float32. Of
// unlike x and weight it is the float32 product, for every bfloat16 is a float32; half the bytes of one are read.
// An int8 weight has a scale for each of its rows, which multiplies the finished sum; sums may be of integers (digits.h).
//
// For few rows of x, where the time is the reading of the weight: every weight row is read once, in order, and multiplied
// with up to kRowsAtOnce rows of x; the others follow while it lies in the cache. The vector width is that of the machine
// it is compiled on. Each y is the same sum in the same order however many rows there are: hence the fused multiply-add by
// name, which compilers else choose loop by loop, and a padded last step in place of single products.

#pragma once

#include <algorithm>
#include <cstdint>

#include "crew.h"
#include "digits.h"
#include "dots.h"
#include "kernels.h"

namespace neuroscope {

// Of weights that a task reads: where rows of x take turns they stay in the second cache; where all rows are taken at
// once longer tasks lose less of what is fetched ahead, which behind a task's last weights is for another thread.
constexpr int64_t kTurnsBytes = 1 << 18, kOnceBytes = 1 << 20;
constexpr int64_t kTasks = 8;  // a thread at least, so that all are done at about the same time

// A task's weights are read from memory for the first rows of x and lie in the cache for the others.
template <typename X, typename W>
void product(Threads& threads, const X* x, const W* weight, int64_t rows, int64_t in, int64_t out, float* y,
             const float* scales) {
  if (rows == 0) return;
  using P = typename Multiplied<X, W>::type;
  const Rows<X, W> of_x(x, rows, in);
  constexpr int kMost = kRowsAtOnce<P>;
  int64_t groups = (rows + kMost - 1) / kMost, group = (rows + groups - 1) / groups;
  int64_t fit = (groups > 1 ? kTurnsBytes : kOnceBytes) / std::max<int64_t>(in * sizeof(W), 1);
  int64_t each = std::max<int64_t>(std::min(fit, out / (kTasks * std::max<int64_t>(threads.count(), 1))) / 8 * 8, 8);
  Crew::run(threads, (out + each - 1) / each, [&, each, group](int64_t task) {
    int64_t o = task * each, count = std::min(out - o, each);
    for (int64_t r = 0; r < rows; r += group) {
      auto form = dots_of<W, P>(std::min(group, rows - r));
      form(of_x.row(r), of_x.stride(), weight + o * in, in, in, count, y + r * out + o, out);
    }
    for (int64_t r = 0; scales && r < rows; ++r) {
      for (int64_t w = o; w < o + count; ++w) y[r * out + w] *= scales[w];
    }
  });
}

}  // namespace neuroscope
