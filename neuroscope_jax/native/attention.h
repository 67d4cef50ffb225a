// Attention of the last few positions of a sequence over its key/value cache, grouped queries, in one pass over the
// slots that they may see; the others are not read, so that the time depends on the text and not on the cache's length.
//
//   s = cap · tanh(q · k · scale / cap)      softmax over the slots j with  i − window < j ≤ i  of the query at i
//
// The slots are taken in blocks. Each gives, for a query, the largest score m, l = Σ e^(s − m) and a = Σ e^(s − m) · v;
// the blocks are put together at the end, in order:
//
//   M = max m        result = Σ e^(m − M) · a  /  Σ e^(m − M) · l
//
// Blocks begin at multiples of kBlock and lie in slots side by side, so a query's result is the same sum whatever else is
// asked at the same time.

#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "crew.h"
#include "dots.h"
#include "kernels.h"

namespace neuroscope {

static_assert(kBlock % kLanes == 0);
constexpr float kLowest = -std::numeric_limits<float>::infinity();

// What one block contributes; `sums` in the order of `place`.
struct Part {
  std::vector<float> largest, total, sums;
  void resize(int64_t rows, int64_t stride) {
    largest.assign(rows, kLowest);
    total.assign(rows, 0.0f);
    sums.assign(rows * stride, 0.0f);
  }
};

template <typename W>
class Attention {
 public:
  Attention(const Shape& shape, const W* query, const W* key, const W* value)
      : shape_(shape), wide_(widened(shape, query)), query_(wide_.data(), shape.rows(), shape.H), key_(key), value_(value),
        parts_(shape.blocks()) {}

  void run(Threads& threads, float* out) {
    Crew::run(threads, shape_.blocks(), [this](int64_t block) { look(block); });
    for (int64_t row = 0; row < shape_.rows(); ++row) merge(row, out + shape_.at(row));
  }

 private:
  static std::vector<float> widened(const Shape& shape, const W* query) {
    std::vector<float> wide(shape.rows() * shape.H);
    for (int64_t row = 0; row < shape.rows(); ++row)
      for (int64_t h = 0; h < shape.H; ++h) wide[row * shape.H + h] = as_float(query[shape.at(row) + h]);
    return wide;
  }

  void look(int64_t block) {
    int64_t begin = (shape_.first_block() + block) * kBlock, end = std::min(begin + kBlock, shape_.end(shape_.T - 1));
    int64_t seen = std::max(begin, shape_.first(0));  // by any query
    Part& part = parts_[block];
    part.resize(shape_.rows(), query_.stride());
    std::vector<float> weights(shape_.rows() * kBlock);
    float* of_seen = weights.data() + seen - begin;
    for (int64_t head = 0; head < shape_.K; ++head) scores(head, seen, end - seen, of_seen);
    for (int64_t row = 0; row < shape_.rows(); ++row) {
      int64_t t = shape_.time_of(row), from = std::max(shape_.first(t), begin), to = std::min(shape_.end(t), end);
      if (from < to) softmax(weights.data() + row * kBlock, from - begin, to - begin, part.largest[row], part.total[row]);
      else std::fill_n(weights.data() + row * kBlock, kBlock, 0.0f);
    }
    for (int64_t head = 0; head < shape_.K; ++head) mix(head, seen, end - seen, of_seen, part.sums.data());
  }

  void scores(int64_t head, int64_t begin, int64_t count, float* out) const {
    const W* keys = key_ + (begin % shape_.S * shape_.K + head) * shape_.H;
    for (int64_t r = 0; r < shape_.together(); r += kRowsAtOnce<float>) {
      int64_t row = head * shape_.together() + r;
      auto form = dots_of<W, float>(std::min<int64_t>(shape_.together() - r, kRowsAtOnce<float>));
      form(query_.row(row), query_.stride(), keys, shape_.K * shape_.H, shape_.H, count, out + row * kBlock, kBlock);
    }
  }

  // Scores to e^(s − m) at the slots from … to − 1 and 0 elsewhere.
  void softmax(float* row, int64_t from, int64_t to, float& largest, float& total) const {
    for (int64_t i = 0; i < kBlock; i += kLanes) {
      Floats s = load(row + i) * shape_.scale;
      if (shape_.cap != 0) s = tanh(s / shape_.cap) * shape_.cap;
      std::memcpy(row + i, &s, sizeof s);
    }
    for (int64_t i = from; i < to; ++i) largest = row[i] > largest ? row[i] : largest;
    for (int64_t i = 0; i < kBlock; i += kLanes) {
      Floats s = exp(load(row + i) - largest);
      std::memcpy(row + i, &s, sizeof s);
    }
    std::fill(row, row + from, 0.0f);
    std::fill(row + to, row + kBlock, 0.0f);
    for (int64_t i = from; i < to; ++i) total += row[i];
  }

  void mix(int64_t head, int64_t begin, int64_t count, const float* weights, float* sums) const {
    const W* values = value_ + (begin % shape_.S * shape_.K + head) * shape_.H;
    int64_t row = head * shape_.together(), last = row + shape_.together();
    for (; row + 2 <= last; row += 2) mix_rows<2>(values, count, weights + row * kBlock, sums + row * query_.stride());
    if (row < last) mix_rows<1>(values, count, weights + row * kBlock, sums + row * query_.stride());
  }

  // A stretch of each value at a time, the sums of all slots over it in registers.
  template <int kRows>
  void mix_rows(const W* values, int64_t count, const float* weights, float* sums) const {
    constexpr int kVectors = 4 / kHalves<W>, kStretch = kVectors * kStep<W>;
    for (int64_t h = 0; h < shape_.H; h += kStretch) {
      Floats sum[kRows][kVectors][kHalves<W>] = {};
      for (int64_t s = 0; s < count; ++s) {
        const W* at = values + s * shape_.K * shape_.H + h;
        for (int v = 0; v < kVectors && h + v * kStep<W> < shape_.H; ++v) {
          int64_t left = shape_.H - h - v * kStep<W>;
          Floats words = left >= kStep<W> ? load(at + v * kStep<W>) : load(at + v * kStep<W>, left);
          for (int r = 0; r < kRows; ++r)
            for (int p = 0; p < kHalves<W>; ++p)
              sum[r][v][p] = multiply_add(filled(weights[r * kBlock + s]), half<W>(words, p), sum[r][v][p]);
        }
      }
      for (int r = 0; r < kRows; ++r)
        std::memcpy(sums + r * query_.stride() + h, &sum[r],
                    std::min<int64_t>(kStretch, query_.stride() - h) * sizeof(float));
    }
  }

  void merge(int64_t row, float* out) const {
    float largest = kLowest, total = 0;
    for (const Part& part : parts_) largest = part.largest[row] > largest ? part.largest[row] : largest;
    std::vector<float> sums(query_.stride());
    for (const Part& part : parts_) {
      if (part.total[row] == 0) continue;
      float weight = exp(filled(part.largest[row] - largest))[0];
      total += weight * part.total[row];
      for (int64_t i = 0; i < query_.stride(); ++i) sums[i] += weight * part.sums[row * query_.stride() + i];
    }
    for (int64_t h = 0; h < shape_.H; ++h) out[h] = sums[place<W>(h)] / total;
  }

  const Shape shape_;
  const std::vector<float> wide_;
  const Rows<float, W> query_;
  const W *key_, *value_;
  std::vector<Part> parts_;
};

template <typename W>
void attend(Threads& threads, const Shape& shape, const W* query, const W* key, const W* value, float* out) {
  Attention<W>(shape, query, key, value).run(threads, out);
}

}  // namespace neuroscope
