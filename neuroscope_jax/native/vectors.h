// Floats by the vector of the machine that this is compiled on, and bfloat16 among them.

#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include "kernels.h"

namespace neuroscope {

#if defined(__AVX512F__)
constexpr int kLanes = 16, kRegisters = 32;
#elif defined(__AVX__)
constexpr int kLanes = 8, kRegisters = 16;
#elif defined(__aarch64__)
constexpr int kLanes = 4, kRegisters = 32;
#else
constexpr int kLanes = 4, kRegisters = 16;
#endif

template <int kCount>
struct Vector {
  typedef float type __attribute__((vector_size(4 * kCount)));
};
using Floats = Vector<kLanes>::type;
typedef uint32_t Words __attribute__((vector_size(4 * kLanes)));
typedef int32_t Integers __attribute__((vector_size(4 * kLanes)));

template <int kCount = kLanes>
float sum(typename Vector<kCount>::type v) {
  if constexpr (kCount == 1) {
    return v[0];
  } else {
    typename Vector<kCount / 2>::type halves[2];
    std::memcpy(halves, &v, sizeof v);
    return sum<kCount / 2>(halves[0] + halves[1]);
  }
}

inline Floats multiply_add(Floats a, Floats b, Floats sum) {
#if defined(__AVX512F__)
  return _mm512_fmadd_ps(a, b, sum);
#elif defined(__FMA__)
  return _mm256_fmadd_ps(a, b, sum);
#elif defined(__aarch64__)
  return vfmaq_f32(sum, a, b);
#else
  return a * b + sum;
#endif
}

// Weights are read as vectors of 32-bit words. A float32 is one; of bfloat16 a word holds two neighbours, of int8 four.
template <typename W>
constexpr int kStep = kLanes * 4 / sizeof(W);

// `count` of the next weights of a row, zeros behind them.
template <typename W>
Floats load(const W* p, int64_t count = kStep<W>) {
  Floats words = {};
  std::memcpy(&words, p, count * sizeof(W));
  return words;
}

// One half of each word as the float32 that its bits begin.
inline Floats first(Floats words) { return reinterpret_cast<Floats>(reinterpret_cast<Words>(words) << 16); }
inline Floats second(Floats words) { return reinterpret_cast<Floats>(reinterpret_cast<Words>(words) & 0xffff0000u); }

// One byte of each word as the float that it counts.
template <int kByte>
Floats counted(Floats words) {
  return __builtin_convertvector(reinterpret_cast<Integers>(reinterpret_cast<Words>(words) << (24 - 8 * kByte)) >> 24,
                                 Floats);
}

// As many of a row as a vector holds.
inline Floats widened(const float* p) { return load(p); }
inline Floats widened(const BFloat16* p) {
  typedef uint16_t Bits __attribute__((vector_size(2 * kLanes)));
  Bits bits;
  std::memcpy(&bits, p, sizeof bits);
  return reinterpret_cast<Floats>(__builtin_convertvector(bits, Words) << 16);
}
inline Floats widened(const Int8* p) {
  typedef int8_t Bytes __attribute__((vector_size(kLanes)));
  Bytes bytes;
  std::memcpy(&bytes, p, sizeof bytes);
  return __builtin_convertvector(__builtin_convertvector(bytes, Integers), Floats);
}

// What x is multiplied as. Only some processors multiply bfloat16 themselves.
template <typename X, typename W>
struct Multiplied {
  typedef float type;
};
#if defined(__AVX512BF16__)
template <>
struct Multiplied<BFloat16, BFloat16> {
  typedef BFloat16 type;
};
#endif

// The products of one step: a vector of weights with x as `Rows` laid it out.
inline Floats multiply_add(Floats weight, const float* x, Floats sum, float) {
  return multiply_add(weight, load(x), sum);
}
inline Floats multiply_add(Floats weight, const float* x, Floats sum, BFloat16) {
  return multiply_add(second(weight), load(x + kLanes), multiply_add(first(weight), load(x), sum));
}
inline Floats multiply_add(Floats weight, const float* x, Floats sum, Int8) {
  sum = multiply_add(counted<0>(weight), load(x), sum);
  sum = multiply_add(counted<1>(weight), load(x + kLanes), sum);
  sum = multiply_add(counted<2>(weight), load(x + 2 * kLanes), sum);
  return multiply_add(counted<3>(weight), load(x + 3 * kLanes), sum);
}
#if defined(__AVX512BF16__)
inline Floats multiply_add(Floats weight, const BFloat16* x, Floats sum, BFloat16) {
  return reinterpret_cast<Floats>(_mm512_dpbf16_ps(reinterpret_cast<__m512>(sum), reinterpret_cast<__m512bh>(weight),
                                                   reinterpret_cast<__m512bh>(load(x))));
}
#endif

// Floats in a vector of W: one half of each word, or two.
template <typename W>
constexpr int kHalves = 4 / sizeof(W);

template <typename W>
Floats half(Floats words, int which) {
  if constexpr (sizeof(W) == 4) return words;
  return which == 0 ? first(words) : second(words);
}

// ---- functions -----------------------------------------------------------------------------------------------------

inline Floats filled(float value) { return value - Floats{}; }  // less 0 is nothing to a compiler, plus 0 would be

// e^x, to 2e-7 of itself; from below the smallest float32 up to 88. Cephes' polynomial; NaN stays NaN.
inline Floats exp(Floats x) {
  x = x < filled(-87.0f) ? filled(-87.0f) : x;
  constexpr float kRound = 12582912.0f;  // 1.5 · 2²³: a sum with it has no fraction left
  Floats whole = (multiply_add(x, filled(1.44269504f), filled(kRound))) - kRound;
  x = multiply_add(whole, filled(-0.693359375f), x);
  x = multiply_add(whole, filled(2.12194440e-4f), x);
  Floats sum = filled(1.9875691500e-4f);
  for (float next : {1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f})
    sum = multiply_add(sum, x, filled(next));
  sum = multiply_add(sum, x * x, x + 1.0f);
  return sum * reinterpret_cast<Floats>((__builtin_convertvector(whole, Integers) + 127) << 23);
}

// To 1e-7, near 0 too, where that is not 1e-7 of itself.
inline Floats tanh(Floats x) {
  Words sign = reinterpret_cast<Words>(x) & 0x80000000u;
  Floats small = exp(reinterpret_cast<Floats>(reinterpret_cast<Words>(x) | 0x80000000u) * 2.0f);  // e^-2|x|
  return reinterpret_cast<Floats>(reinterpret_cast<Words>((1.0f - small) / (1.0f + small)) | sign);
}

// ---- x as it is multiplied ---------------------------------------------------------------------------------------

inline float as_float(float value) { return value; }
inline float as_float(BFloat16 value) {
  uint32_t bits = static_cast<uint32_t>(value.bits) << 16;
  float wide;
  std::memcpy(&wide, &bits, sizeof wide);
  return wide;
}
inline float as_float(Int8 value) { return value.value; }

// Where the i-th of a row of W lies once the row is floats: as the words are taken apart, of bfloat16 all `first`, then
// all `second`, and of int8 likewise byte by byte,
//   a step:  0 1 2 3 4 5 …   ─▶   0 2 4 … 1 3 5 …
template <typename W>
int64_t place(int64_t i) {
  constexpr int kParts = 4 / sizeof(W);  // of a word
  int64_t within = i % kStep<W>;
  return i - within + within / kParts + within % kParts * kLanes;
}

// Rows filled up with zeros to whole steps.
template <typename X, typename W>
class Rows {
  using P = typename Multiplied<X, W>::type;
  static constexpr bool kSame = sizeof(W) == sizeof(P);  // else floats for narrower weights

 public:
  Rows(const X* x, int64_t rows, int64_t in) : stride_((in + kStep<W> - 1) / kStep<W> * kStep<W>) {
    if constexpr (std::is_same_v<X, P> && kSame) {
      if (stride_ == in) {  // they lie so already
        at_ = x;
        return;
      }
    }
    copy_.resize(rows * stride_);
    at_ = copy_.data();
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t i = 0; i < in; ++i) copy_[r * stride_ + (kSame ? i : place<W>(i))] = as<P>(x[r * in + i]);
    }
  }

  const P* row(int64_t r) const { return at_ + r * stride_; }
  int64_t stride() const { return stride_; }

 private:
  template <typename To>
  static To as(X value) {
    if constexpr (std::is_same_v<X, To>) return value;
    else return as_float(value);
  }

  const int64_t stride_;
  std::vector<P> copy_;
  const P* at_;
};

}  // namespace neuroscope
