// Dot products with int8 weights in integers, for processors that multiply bytes with bytes and add up (VNNI): 64 weights
// take 5 instructions instead of the 16 that make floats of them first. Of x what is below 2^-30 of its largest number is
// cut off; sums are exact.
//
//     x + 2^31, of 2^k     =  digit 3 · 2^24  +  digit 2 · 2^16  +  digit 1 · 2^8  +  digit 0
//     (x + 2^31) · weight  =  Σ digit d · weight · 2^8d,   less 2^31 · Σ weight:  x · weight
//
// Digits are unsigned, as the instruction wants one of its bytes to be.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "dots.h"
#include "vectors.h"

#if defined(__AVX512F__) ? defined(__AVX512VNNI__) : defined(__AVXVNNI__)
namespace neuroscope {

struct Digit {
  uint8_t value;
};
template <typename X>
struct Multiplied<X, Int8> {
  typedef Digit type;
};

template <>
constexpr int kRowsAtOnce<Digit> = 3;
template <int kRows>
constexpr int kWeights<kRows, Digit> = (kRows == 1 ? 4 : kRows == 2 ? 3 : 2) / (kRegisters == 16 ? 2 : 1);

constexpr int kDigits = 4;
constexpr int64_t kHead = sizeof(double);  // before the digits of a row: what its integers are multiples of

template <typename X>
class Rows<X, Int8> {
 public:
  Rows(const X* x, int64_t rows, int64_t in)
      : plane_((in + kStep<Int8> - 1) / kStep<Int8> * kStep<Int8>), copy_(rows * stride()) {
    for (int64_t r = 0; r < rows; ++r) write(x + r * in, in, copy_.data() + r * stride());
  }
  const Digit* row(int64_t r) const { return copy_.data() + r * stride(); }
  int64_t stride() const { return kHead + kDigits * plane_; }

 private:
  void write(const X* from, int64_t in, Digit* to) const {
    typedef uint8_t Bytes __attribute__((vector_size(kLanes)));
    const float largest = largest_of(from, in);
    const bool finite = largest <= std::numeric_limits<float>::max();
    int exponent = 0;
    if (finite) std::frexp(largest, &exponent);  // all of the row is below 2^exponent
    const int bits = std::min(30 - exponent, 127);
    const double unit = finite ? std::ldexp(1.0, -bits) : std::numeric_limits<double>::quiet_NaN();
    std::memcpy(to, &unit, kHead);
    if (!finite) return;  // what is multiplied by such a unit is NaN
    to += kHead;
    const Floats scale = filled(std::ldexp(1.0f, bits));
    for (int64_t i = 0; i < in; i += kLanes) {
      Integers whole = __builtin_convertvector(next(from + i, in - i) * scale, Integers);
      Words digits = reinterpret_cast<Words>(whole) ^ 0x80000000u;
      for (int d = 0; d < kDigits; ++d) {
        Bytes bytes = __builtin_convertvector(digits >> (8 * d) & 0xffu, Bytes);
        std::memcpy(to + d * plane_ + i, &bytes, sizeof bytes);
      }
    }
  }

  // Of the numbers without their signs; not finite where one is not.
  static float largest_of(const X* from, int64_t in) {
    Floats most = {};
    for (int64_t i = 0; i < in; i += kLanes) {
      Floats x = reinterpret_cast<Floats>(reinterpret_cast<Words>(next(from + i, in - i)) & 0x7fffffffu);
      most = x > most || x != x ? x : most;
    }
    float largest = 0.0f;
    for (int i = 0; i < kLanes; ++i) {
      if (!(most[i] <= largest)) largest = most[i];
      if (largest != largest) return largest;
    }
    return largest;
  }

  static Floats next(const X* from, int64_t count) {
    if (count >= kLanes) return widened(from);
    X there[kLanes] = {};
    std::memcpy(there, from, count * sizeof(X));
    return widened(there);
  }

  const int64_t plane_;
  std::vector<Digit> copy_;
};

inline Integers multiply_add(Integers digits, Integers weight, Integers sum) {
#if defined(__AVX512F__)
  return reinterpret_cast<Integers>(_mm512_dpbusd_epi32(reinterpret_cast<__m512i>(sum), reinterpret_cast<__m512i>(digits),
                                                        reinterpret_cast<__m512i>(weight)));
#else
  return reinterpret_cast<Integers>(_mm256_dpbusd_avx_epi32(
      reinterpret_cast<__m256i>(sum), reinterpret_cast<__m256i>(digits), reinterpret_cast<__m256i>(weight)));
#endif
}

// What one lane has is within 32 bits for any width up to 2^19, what several have need not be.
inline int64_t sum(Integers v) {
  int64_t total = 0;
  for (int i = 0; i < kLanes; ++i) total += v[i];
  return total;
}

template <int kRows, int kWeights>
void dot(const Digit* x, int64_t stride, const Int8* weight, int64_t pitch, int64_t in, float* y, int64_t out,
         int64_t ahead = 0) {
  constexpr int64_t kBytes = kStep<Int8>;
  const int64_t plane = (stride - kHead) / kDigits;
  const Integers ones = Integers{} + 0x01010101;
  Integers sums[kWeights][kRows][kDigits] = {}, weights[kWeights] = {};
  auto step = [&](int64_t i, int64_t count) {
    Integers of_weight[kWeights];
    for (int w = 0; w < kWeights; ++w) {
      of_weight[w] = reinterpret_cast<Integers>(load(weight + w * pitch + i, count));
      weights[w] = multiply_add(ones, of_weight[w], weights[w]);
    }
    for (int r = 0; r < kRows; ++r) {
      for (int d = 0; d < kDigits; ++d) {
        Integers digits;
        std::memcpy(&digits, x + r * stride + kHead + d * plane + i, sizeof digits);
        for (int w = 0; w < kWeights; ++w) sums[w][r][d] = multiply_add(digits, of_weight[w], sums[w][r][d]);
      }
    }
  };
  int64_t i = 0;
  for (; i + kBytes <= in; i += kBytes) {
    for (int w = 0; w < kWeights; ++w) __builtin_prefetch(weight + w * pitch + ahead + i, 0, 2);
    step(i, kBytes);
  }
  if (i < in) step(i, in - i);
  for (int w = 0; w < kWeights; ++w) {
    const int64_t offset = sum(weights[w]) * (int64_t{1} << 31);
    for (int r = 0; r < kRows; ++r) {
      int64_t total = -offset;
      for (int d = 0; d < kDigits; ++d) total += sum(sums[w][r][d]) * (int64_t{1} << (8 * d));
      double unit;
      std::memcpy(&unit, x + r * stride, kHead);
      y[r * out + w] = static_cast<float>(total * unit);
    }
  }
}

}  // namespace neuroscope
#endif
