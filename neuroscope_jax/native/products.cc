// y = x · weightᵀ for weights as checkpoints keep them, [out, in], float32 or bfloat16; sums and y are float32.
//
// For few rows of x, where the time is the reading of the weight: every weight row is read once, in order, and multiplied
// with up to kRowsAtOnce rows of x; the others follow while it lies in the cache. The vector width is that of the machine
// it is compiled on; only bfloat16 pairs need an intrinsic.

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>

#if defined(__AVX512BF16__)
#include <immintrin.h>
#endif

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

namespace {

#if defined(__AVX512F__)
constexpr int kLanes = 16;
#elif defined(__AVX__)
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif
constexpr int kRowsAtOnce = 8;
constexpr int64_t kTaskBytes = 1 << 18;  // of weights that one task reads: they stay in the second cache

typedef float Floats __attribute__((vector_size(4 * kLanes), aligned(4), may_alias));
typedef uint32_t Words __attribute__((vector_size(4 * kLanes), aligned(4), may_alias));
typedef uint16_t Halves __attribute__((vector_size(2 * kLanes), aligned(2), may_alias));

struct BFloat16 {
  uint16_t bits;
};

float as_float(float x) { return x; }
float as_float(BFloat16 x) {
  uint32_t bits = uint32_t{x.bits} << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

Floats load(const float* p) { return *reinterpret_cast<const Floats*>(p); }
Floats load(const BFloat16* p) {
  Words words = __builtin_convertvector(*reinterpret_cast<const Halves*>(p), Words) << 16;
  return reinterpret_cast<Floats>(words);
}

template <int kStep, int... i>
Floats rotated(Floats v, std::integer_sequence<int, i...>) {
  return __builtin_shufflevector(v, v, ((i + kStep) % kLanes)...);
}

template <int kStep = kLanes / 2>
float sum(Floats v) {
  if constexpr (kStep == 0) return v[0];
  else return sum<kStep / 2>(v + rotated<kStep>(v, std::make_integer_sequence<int, kLanes>()));
}

// Operands are vectors of 32-bit words. A float32 is one; of bfloat16 a word holds two neighbours where the processor
// multiplies pairs, else one, widened.
#if defined(__AVX512BF16__)
constexpr bool kPairs = true;
#else
constexpr bool kPairs = false;
#endif

template <typename T>
constexpr int kPerWord = sizeof(T) == 2 && kPairs ? 2 : 1;

template <typename T>
void multiply_add(Floats& sum, Floats a, Floats b) {
#if defined(__AVX512BF16__)
  if constexpr (sizeof(T) == 2) {
    sum = reinterpret_cast<Floats>(_mm512_dpbf16_ps(reinterpret_cast<__m512>(sum), reinterpret_cast<__m512bh>(a),
                                                    reinterpret_cast<__m512bh>(b)));
    return;
  }
#endif
  sum += a * b;
}

// The next kLanes words of a row.
template <typename T>
Floats load_words(const T* p) {
  if constexpr (kPerWord<T> == 2) return load(reinterpret_cast<const float*>(p));
  else return load(p);
}

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
constexpr int kWeights = (kRows <= 3 ? 8 : kRows == 4 ? 6 : 4) / (kLanes == 8 ? 2 : 1);

template <int kRows, int kWeights, typename T>
void dot(const T* x, const T* weight, int64_t in, int64_t out, float* y) {
  constexpr int kStep = kLanes * kPerWord<T>;
  Floats sums[kWeights][kRows] = {};
  int64_t i = 0;
  for (; i + kStep <= in; i += kStep) {
    for (int w = 0; w < kWeights; ++w) {
      Floats of_weight = load_words(weight + w * in + i);
      for (int r = 0; r < kRows; ++r) multiply_add<T>(sums[w][r], of_weight, load_words(x + r * in + i));
    }
  }
  for (int w = 0; w < kWeights; ++w) {
    for (int r = 0; r < kRows; ++r) {
      float total = sum(sums[w][r]);
      for (int64_t j = i; j < in; ++j) total += as_float(weight[w * in + j]) * as_float(x[r * in + j]);
      y[r * out + w] = total;
    }
  }
}

template <int kRows, typename T>
void dots(const T* x, const T* weight, int64_t in, int64_t out, int64_t count, float* y) {
  constexpr int kAtOnce = kWeights<kRows>;
  int64_t o = 0;
  for (; o + kAtOnce <= count; o += kAtOnce) dot<kRows, kAtOnce>(x, weight + o * in, in, out, y + o);
  for (; o < count; ++o) dot<kRows, 1>(x, weight + o * in, in, out, y + o);
}

template <typename T>
using Dots = void (*)(const T*, const T*, int64_t, int64_t, int64_t, float*);

template <typename T, int... i>
Dots<T> dots_of(int64_t rows, std::integer_sequence<int, i...>) {
  static constexpr Dots<T> forms[] = {dots<i + 1, T>...};
  return forms[rows - 1];
}

// A task's weights are read from memory for the first rows of x and lie in the cache for the others.
template <typename T>
void product(ffi::ThreadPool& pool, const T* x, const T* weight, int64_t rows, int64_t in, int64_t out, float* y) {
  if (rows == 0) return;
  int64_t groups = (rows + kRowsAtOnce - 1) / kRowsAtOnce, group = (rows + groups - 1) / groups;
  int64_t each = std::max<int64_t>(kRowsAtOnce, kTaskBytes / (in * sizeof(T)) / kRowsAtOnce * kRowsAtOnce);
  Crew::run(pool, (out + each - 1) / each, [=](int64_t task) {
    int64_t o = task * each, count = std::min(out - o, each);
    for (int64_t r = 0; r < rows; r += group) {
      auto form = dots_of<T>(std::min(group, rows - r), std::make_integer_sequence<int, kRowsAtOnce>());
      form(x + r * in, weight + o * in, in, out, count, y + r * out + o);
    }
  });
}

// ---- what XLA calls ---------------------------------------------------------------------------------------------

ffi::Error product_impl(ffi::ThreadPool pool, ffi::AnyBuffer x, ffi::AnyBuffer weight,
                        ffi::ResultBufferR2<ffi::F32> y) {
  auto of_x = x.dimensions(), of_weight = weight.dimensions();
  if (of_x.size() != 2 || of_weight.size() != 2 || of_x[1] != of_weight[1] || x.element_type() != weight.element_type())
    return ffi::Error::InvalidArgument("expected x [rows, in] and weight [out, in] of one type");
  int64_t rows = of_x[0], in = of_x[1], out = of_weight[0];
  float* to = y->typed_data();
  if (x.element_type() == ffi::F32) {
    product(pool, x.typed_data<float>(), weight.typed_data<float>(), rows, in, out, to);
  } else if (x.element_type() == ffi::BF16) {
    product(pool, static_cast<const BFloat16*>(x.untyped_data()), static_cast<const BFloat16*>(weight.untyped_data()),
            rows, in, out, to);
  } else {
    return ffi::Error::InvalidArgument("expected float32 or bfloat16");
  }
  return ffi::Error::Success();
}

}  // namespace

extern "C" __attribute__((visibility("default"))) XLA_FFI_Error* neuroscope_product(XLA_FFI_CallFrame* frame) {
  static auto* handler =
      ffi::Ffi::Bind().Ctx<ffi::ThreadPool>().Arg<ffi::AnyBuffer>().Arg<ffi::AnyBuffer>().Ret<ffi::BufferR2<ffi::F32>>()
          .To(product_impl).release();
  return handler->Call(frame);
}
