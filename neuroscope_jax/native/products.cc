// y = x · weightᵀ for weights as checkpoints keep them, [out, in], float32 or bfloat16; sums and y are float32.
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
#include <utility>

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

// Operands of a product are vectors of 32-bit words. A float32 is one; of bfloat16 a word holds two neighbours.
template <typename T>
constexpr int kPerWord = 4 / sizeof(T);

// `count` of the next operands of a row, zeros behind them.
template <typename T>
Floats load(const T* p, int64_t count = kLanes * kPerWord<T>) {
  Floats words = {};
  std::memcpy(&words, p, count * sizeof(T));
  return words;
}

// One half of each word as the float32 that its bits begin.
Floats first(Floats words) { return reinterpret_cast<Floats>(reinterpret_cast<Words>(words) << 16); }
Floats second(Floats words) { return reinterpret_cast<Floats>(reinterpret_cast<Words>(words) & 0xffff0000u); }

template <typename T>
Floats multiply_add_words(Floats a, Floats b, Floats sum) {
  if constexpr (kPerWord<T> == 1) return multiply_add(a, b, sum);
#if defined(__AVX512BF16__)
  return reinterpret_cast<Floats>(_mm512_dpbf16_ps(reinterpret_cast<__m512>(sum), reinterpret_cast<__m512bh>(a),
                                                   reinterpret_cast<__m512bh>(b)));
#else
  return multiply_add(second(a), second(b), multiply_add(first(a), first(b), sum));
#endif
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
constexpr int kWeights = (kRows <= 3 ? 8 : kRows == 4 ? 6 : 4) / (kRegisters == 16 ? 2 : 1);

template <int kRows, int kWeights, typename T>
void dot(const T* x, const T* weight, int64_t in, int64_t out, float* y) {
  constexpr int kStep = kLanes * kPerWord<T>;
  Floats sums[kWeights][kRows] = {};
  int64_t i = 0;
  for (; i + kStep <= in; i += kStep) {
    for (int w = 0; w < kWeights; ++w) {
      Floats of_weight = load(weight + w * in + i);
      for (int r = 0; r < kRows; ++r) sums[w][r] = multiply_add_words<T>(of_weight, load(x + r * in + i), sums[w][r]);
    }
  }
  for (int w = 0; w < kWeights && i < in; ++w) {
    Floats of_weight = load(weight + w * in + i, in - i);
    for (int r = 0; r < kRows; ++r)
      sums[w][r] = multiply_add_words<T>(of_weight, load(x + r * in + i, in - i), sums[w][r]);
  }
  for (int w = 0; w < kWeights; ++w) {
    for (int r = 0; r < kRows; ++r) y[r * out + w] = sum(sums[w][r]);
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
  int64_t fit = kTaskBytes / std::max<int64_t>(in * sizeof(T), 1);
  int64_t each = std::max<int64_t>(fit / kRowsAtOnce * kRowsAtOnce, kRowsAtOnce);
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
