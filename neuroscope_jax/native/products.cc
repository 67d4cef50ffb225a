// y = x · weightᵀ for weights as checkpoints keep them, [out, in], float32 or bfloat16; sums and y are float32. A float32
// x may meet a bfloat16 weight: every bfloat16 is a float32, so that is a float32 product that reads half the bytes.
//
// For few rows of x, where the time is the reading of the weight: every weight row is read once, in order, and multiplied
// with up to kRowsAtOnce rows of x; the others follow while it lies in the cache. The vector width is that of the machine
// it is compiled on. Each y is the same sum in the same order however many rows there are: hence the fused multiply-add by
// name, which compilers else choose loop by loop, and a padded last step in place of single products.

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

namespace {

#if defined(__AVX512F__)
constexpr int kLanes = 16, kRegisters = 32;
#elif defined(__AVX__)
constexpr int kLanes = 8, kRegisters = 16;
#elif defined(__aarch64__)
constexpr int kLanes = 4, kRegisters = 32;
#else
constexpr int kLanes = 4, kRegisters = 16;
#endif
constexpr int kRowsAtOnce = 8;
constexpr int64_t kTaskBytes = 1 << 18;  // of weights that one task reads: they stay in the second cache

template <int kCount>
struct Vector {
  typedef float type __attribute__((vector_size(4 * kCount)));
};
using Floats = Vector<kLanes>::type;
typedef uint32_t Words __attribute__((vector_size(4 * kLanes)));

struct BFloat16 {
  uint16_t bits;
};

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

Floats multiply_add(Floats a, Floats b, Floats sum) {
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

// Weights are read as vectors of 32-bit words. A float32 is one; of bfloat16 a word holds two neighbours.
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
Floats first(Floats words) { return reinterpret_cast<Floats>(reinterpret_cast<Words>(words) << 16); }
Floats second(Floats words) { return reinterpret_cast<Floats>(reinterpret_cast<Words>(words) & 0xffff0000u); }

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
Floats multiply_add(Floats weight, const float* x, Floats sum, float) {
  return multiply_add(weight, load(x), sum);
}
Floats multiply_add(Floats weight, const float* x, Floats sum, BFloat16) {
  return multiply_add(second(weight), load(x + kLanes), multiply_add(first(weight), load(x), sum));
}
#if defined(__AVX512BF16__)
Floats multiply_add(Floats weight, const BFloat16* x, Floats sum, BFloat16) {
  return reinterpret_cast<Floats>(_mm512_dpbf16_ps(reinterpret_cast<__m512>(sum), reinterpret_cast<__m512bh>(weight),
                                                   reinterpret_cast<__m512bh>(load(x))));
}
#endif

// ---- x as it is multiplied ---------------------------------------------------------------------------------------

float as_float(float value) { return value; }
float as_float(BFloat16 value) {
  uint32_t bits = static_cast<uint32_t>(value.bits) << 16;
  float wide;
  std::memcpy(&wide, &bits, sizeof wide);
  return wide;
}

// Rows filled up with zeros to whole steps. Floats for bfloat16 weights lie as `first` and `second` take those apart:
//   a step of x:  0 1 2 3 4 5 …   ─▶   0 2 4 … 1 3 5 …
template <typename X, typename W>
class Rows {
  using P = typename Multiplied<X, W>::type;
  static constexpr bool kApart = sizeof(W) == 2 && sizeof(P) == 4;

 public:
  Rows(const X* x, int64_t rows, int64_t in) : stride_((in + kStep<W> - 1) / kStep<W> * kStep<W>) {
    if constexpr (std::is_same_v<X, P> && !kApart) {
      if (stride_ == in) {  // they lie so already
        at_ = x;
        return;
      }
    }
    copy_.resize(rows * stride_);
    at_ = copy_.data();
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t i = 0; i < in; ++i) copy_[r * stride_ + place(i)] = as<P>(x[r * in + i]);
    }
  }

  const P* row(int64_t r) const { return at_ + r * stride_; }
  int64_t stride() const { return stride_; }

 private:
  static int64_t place(int64_t i) {
    if constexpr (!kApart) return i;
    int64_t within = i % kStep<W>;
    return i - within + within / 2 + within % 2 * kLanes;
  }

  template <typename To>
  static To as(X value) {
    if constexpr (std::is_same_v<X, To>) return value;
    else return as_float(value);
  }

  const int64_t stride_;
  std::vector<P> copy_;
  const P* at_;
};

// ---- work shared among XLA's own threads -----------------------------------------------------------------------

// Tasks are handed out by a counter. The calling thread takes tasks as well and at the end waits only for those that
// others have begun, so nothing waits for a thread that is not there.
class Crew {
 public:
  template <typename Task>
  static void run(ffi::ThreadPool& pool, int64_t tasks, const Task& task) {
    auto crew = std::make_shared<Crew>(tasks);
    int64_t helpers = std::min<int64_t>(pool.num_threads(), tasks) - 1;
    for (int64_t i = 0; i < helpers; ++i) pool.Schedule([crew, &task] { crew->work(task); });
    crew->work(task);
    crew->wait();
  }

  explicit Crew(int64_t tasks) : tasks_(tasks) {}

 private:
  // `task` is alive for as long as there are tasks to take.
  template <typename Task>
  void work(const Task& task) {
    for (int64_t i; (i = next_.fetch_add(1)) < tasks_;) {
      task(i);
      if (done_.fetch_add(1) + 1 == tasks_) {
        std::lock_guard<std::mutex> lock(mutex_);
        finished_.notify_all();
      }
    }
  }

  void wait() {
    for (int spin = 0; spin < 2000 && done_.load() < tasks_; ++spin) {
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
    std::unique_lock<std::mutex> lock(mutex_);
    finished_.wait(lock, [this] { return done_.load() == tasks_; });
  }

  const int64_t tasks_;
  std::atomic<int64_t> next_{0}, done_{0};
  std::mutex mutex_;
  std::condition_variable finished_;
};

// ---- the product ---------------------------------------------------------------------------------------------------

// Several weight rows at a time, as many as leave room for their sums: reads of one row alone do not fill the memory bus.
template <int kRows>
constexpr int kWeights = (kRows <= 3 ? 8 : kRows == 4 ? 6 : 4) / (kRegisters == 16 ? 2 : 1);

template <int kRows, int kWeights, typename W, typename P>
void dot(const P* x, int64_t stride, const W* weight, int64_t in, int64_t out, float* y) {
  Floats sums[kWeights][kRows] = {};
  int64_t i = 0;
  for (; i + kStep<W> <= in; i += kStep<W>) {
    for (int w = 0; w < kWeights; ++w) {
      const W* at = weight + w * in + i;
      __builtin_prefetch(at + kWeights * in, 0, 2);
      Floats of_weight = load(at);
      for (int r = 0; r < kRows; ++r) sums[w][r] = multiply_add(of_weight, x + r * stride + i, sums[w][r], W());
    }
  }
  for (int w = 0; w < kWeights && i < in; ++w) {
    Floats of_weight = load(weight + w * in + i, in - i);
    for (int r = 0; r < kRows; ++r) sums[w][r] = multiply_add(of_weight, x + r * stride + i, sums[w][r], W());
  }
  for (int w = 0; w < kWeights; ++w) {
    for (int r = 0; r < kRows; ++r) y[r * out + w] = sum(sums[w][r]);
  }
}

template <int kRows, typename W, typename P>
void dots(const P* x, int64_t stride, const W* weight, int64_t in, int64_t out, int64_t count, float* y) {
  constexpr int kAtOnce = kWeights<kRows>;
  int64_t o = 0;
  for (; o + kAtOnce <= count; o += kAtOnce) dot<kRows, kAtOnce>(x, stride, weight + o * in, in, out, y + o);
  for (; o < count; ++o) dot<kRows, 1>(x, stride, weight + o * in, in, out, y + o);
}

template <typename W, typename P>
using Dots = void (*)(const P*, int64_t, const W*, int64_t, int64_t, int64_t, float*);

template <typename W, typename P, int... i>
Dots<W, P> dots_of(int64_t rows, std::integer_sequence<int, i...>) {
  static constexpr Dots<W, P> forms[] = {dots<i + 1, W, P>...};
  return forms[rows - 1];
}

// A task's weights are read from memory for the first rows of x and lie in the cache for the others.
template <typename X, typename W>
void product(ffi::ThreadPool& pool, const X* x, const W* weight, int64_t rows, int64_t in, int64_t out, float* y) {
  if (rows == 0) return;
  using P = typename Multiplied<X, W>::type;
  const Rows<X, W> of_x(x, rows, in);
  int64_t groups = (rows + kRowsAtOnce - 1) / kRowsAtOnce, group = (rows + groups - 1) / groups;
  int64_t fit = kTaskBytes / std::max<int64_t>(in * sizeof(W), 1);
  int64_t each = std::max<int64_t>(fit / kRowsAtOnce * kRowsAtOnce, kRowsAtOnce);
  Crew::run(pool, (out + each - 1) / each, [&, each, group](int64_t task) {
    int64_t o = task * each, count = std::min(out - o, each);
    for (int64_t r = 0; r < rows; r += group) {
      auto form = dots_of<W, P>(std::min(group, rows - r), std::make_integer_sequence<int, kRowsAtOnce>());
      form(of_x.row(r), of_x.stride(), weight + o * in, in, out, count, y + r * out + o);
    }
  });
}

// ---- what XLA calls ---------------------------------------------------------------------------------------------

template <typename X, typename W>
ffi::Error product_of(ffi::ThreadPool& pool, ffi::AnyBuffer& x, ffi::AnyBuffer& weight, float* y) {
  auto of_x = x.dimensions(), of_weight = weight.dimensions();
  product(pool, static_cast<const X*>(x.untyped_data()), static_cast<const W*>(weight.untyped_data()), of_x[0], of_x[1],
          of_weight[0], y);
  return ffi::Error::Success();
}

ffi::Error product_impl(ffi::ThreadPool pool, ffi::AnyBuffer x, ffi::AnyBuffer weight,
                        ffi::ResultBufferR2<ffi::F32> y) {
  auto of_x = x.dimensions(), of_weight = weight.dimensions();
  if (of_x.size() != 2 || of_weight.size() != 2 || of_x[1] != of_weight[1])
    return ffi::Error::InvalidArgument("expected x [rows, in] and weight [out, in]");
  auto x_type = x.element_type(), type = weight.element_type();
  float* to = y->typed_data();
  if (x_type == ffi::F32 && type == ffi::F32) return product_of<float, float>(pool, x, weight, to);
  if (x_type == ffi::F32 && type == ffi::BF16) return product_of<float, BFloat16>(pool, x, weight, to);
  if (x_type == ffi::BF16 && type == ffi::BF16) return product_of<BFloat16, BFloat16>(pool, x, weight, to);
  return ffi::Error::InvalidArgument("expected float32 or bfloat16, the weight no wider than x");
}

}  // namespace

extern "C" __attribute__((visibility("default"))) XLA_FFI_Error* neuroscope_product(XLA_FFI_CallFrame* frame) {
  static auto* handler =
      ffi::Ffi::Bind().Ctx<ffi::ThreadPool>().Arg<ffi::AnyBuffer>().Arg<ffi::AnyBuffer>().Ret<ffi::BufferR2<ffi::F32>>()
          .To(product_impl).release();
  return handler->Call(frame);
}
