// y = x · weightᵀ for many rows of x, where the time is the arithmetic: products.h is for few, where it is the reading.
//
// Both are written out as panels, kDepth of their columns at a time: of x kRows rows, once, and of the weight kColumns
// rows, by the task that takes kBlock of them and keeps kDepths of their panels in the second cache. Tiles says so, how a
// panel lies (columns filled up with zeros to whole kSteps, and of a number as many parts as it is multiplied in) and how
// two panels are multiplied; they go by in the order in which they lie.
//
// Each y is the same sum in the same order however many rows there are, and another than for few rows, by rounding.

#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "crew.h"
#include "kernels.h"

namespace neuroscope {

constexpr int64_t kLeastRows = 96;  // of x, for which a block is worth being written out once more

inline int64_t whole(int64_t count, int64_t step) { return (count + step - 1) / step * step; }

template <typename Tiles>
int64_t room_for(int64_t rows, int64_t in) {
  int64_t elements = whole(rows, Tiles::kRows) * whole(in, Tiles::kStep) * Tiles::kRowParts;
  return elements * sizeof(typename Tiles::Element) / sizeof(float);
}

// The panels of x, in the room that there is for them: those of all rows' first kDepth columns, then those of the next.
template <typename Tiles>
class RowPanels {
  using Element = typename Tiles::Element;

 public:
  template <typename X>
  RowPanels(Threads& threads, const X* x, int64_t rows, int64_t in, float* room)
      : rows_(whole(rows, Tiles::kRows)), in_(in), room_(reinterpret_cast<Element*>(room)) {
    Crew::run(threads, rows_ / Tiles::kRows, [&](int64_t task) {
      int64_t r = task * Tiles::kRows;
      for (int64_t k = 0; k < in; k += Tiles::kDepth) Tiles::write_rows(x + r * in + k, in, rows - r, depth(k), at(r, k));
    });
  }
  int64_t depth(int64_t k) const { return std::min(in_ - k, Tiles::kDepth); }
  Element* at(int64_t r, int64_t k) const {  // of whole tiles and depths
    return room_ + (k * rows_ + r * whole(depth(k), Tiles::kStep)) * Tiles::kRowParts;
  }

 private:
  const int64_t rows_, in_;
  Element* const room_;
};

// The rows of a task, in whole tiles: all of x, but parts of it where threads would have no block of their own.
template <typename Tiles>
int64_t rows_a_task(const Threads& threads, int64_t rows, int64_t blocks) {
  int64_t parts = std::clamp<int64_t>(4 * threads.count() / std::max<int64_t>(blocks, 1), 1, (rows - 1) / kLeastRows + 1);
  return whole((rows + parts - 1) / parts, Tiles::kRows);
}

// A tile of which only `rows` and `columns` are there.
template <typename Tiles>
void edge(const typename Tiles::Element* of_x, const typename Tiles::Element* of_weight, int64_t depth, float* y,
          int64_t out, int64_t rows, int64_t columns, bool begins) {
  float sums[Tiles::kRows][Tiles::kColumns] = {};
  rows = std::min<int64_t>(rows, Tiles::kRows), columns = std::min<int64_t>(columns, Tiles::kColumns);
  for (int64_t r = 0; !begins && r < rows; ++r) std::copy_n(y + r * out, columns, sums[r]);
  Tiles::tile(of_x, of_weight, depth, sums[0], Tiles::kColumns, begins);
  for (int64_t r = 0; r < rows; ++r) std::copy_n(sums[r], columns, y + r * out);
}

// Rows `begin` to `end` of y, `count` of its columns, each times its scale where there are scales.
template <typename Tiles, typename W>
void block_in_tiles(const RowPanels<Tiles>& x, const W* weight, int64_t begin, int64_t end, int64_t in, int64_t count,
                    float* y, int64_t out, const float* scales) {
  struct alignas(64) Panels {
    typename Tiles::Element at[Tiles::kBlock * Tiles::kDepth * Tiles::kDepths * Tiles::kColumnParts];
  };
  static_assert(Tiles::kBlock % Tiles::kColumns == 0 && Tiles::kDepth % Tiles::kStep == 0);
  std::unique_ptr<Panels> panels(new Panels);
  [[maybe_unused]] typename Tiles::Session session;
  for (int64_t first = 0; first < in; first += Tiles::kDepths * Tiles::kDepth) {
    int64_t last = std::min(in, first + Tiles::kDepths * Tiles::kDepth);
    auto panel = [&](int64_t c, int64_t k) {
      return panels->at + ((k - first) * Tiles::kBlock + c * whole(x.depth(k), Tiles::kStep)) * Tiles::kColumnParts;
    };
    for (int64_t k = first; k < last; k += Tiles::kDepth) {
      for (int64_t c = 0; c < count; c += Tiles::kColumns)
        Tiles::write_columns(weight + c * in + k, in, count - c, x.depth(k), panel(c, k));
    }
    for (int64_t r = begin; r < end; r += Tiles::kRows) {
      for (int64_t k = first; k < last; k += Tiles::kDepth) {
        for (int64_t c = 0; c < count; c += Tiles::kColumns) {
          float* at = y + r * out + c;
          if (end - r >= Tiles::kRows && count - c >= Tiles::kColumns)
            Tiles::tile(x.at(r, k), panel(c, k), x.depth(k), at, out, k == 0);
          else edge<Tiles>(x.at(r, k), panel(c, k), x.depth(k), at, out, end - r, count - c, k == 0);
        }
      }
    }
  }
  for (int64_t r = begin; scales && r < end; ++r) {
    for (int64_t c = 0; c < count; ++c) y[r * out + c] *= scales[c];
  }
}

template <typename Tiles, typename X, typename W>
void multiply(Threads& threads, const X* x, const W* weight, int64_t rows, int64_t in, int64_t out, float* room,
              float* y, const float* scales) {
  const RowPanels<Tiles> panels(threads, x, rows, in, room);
  int64_t blocks = (out + Tiles::kBlock - 1) / Tiles::kBlock, each = rows_a_task<Tiles>(threads, rows, blocks);
  Crew::run(threads, blocks * ((rows + each - 1) / each), [&](int64_t task) {
    int64_t o = task % blocks * Tiles::kBlock, r = task / blocks * each;
    block_in_tiles<Tiles>(panels, weight + o * in, r, std::min(rows, r + each), in, std::min(out - o, Tiles::kBlock),
                          y + o, out, scales ? scales + o : nullptr);
  });
}

}  // namespace neuroscope
