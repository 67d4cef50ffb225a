// How a kernel is seen from outside: a function that XLA calls through its foreign function interface.

#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <new>
#include <utility>

#include "crew.h"
#include "xla/ffi/api/ffi.h"

namespace neuroscope {

namespace ffi = xla::ffi;

// Every kernel is one of these: what ffi.h makes of the form of a function takes a compiler seconds, once for all is
// enough.
using Kernel = ffi::Error (*)(ffi::ThreadPool, ffi::RemainingArgs, ffi::RemainingRets, ffi::Dictionary);

template <Kernel kKernel>
XLA_FFI_Error* call(XLA_FFI_CallFrame* frame) {
  static auto* handler = ffi::Ffi::Bind()
                             .Ctx<ffi::ThreadPool>()
                             .RemainingArgs()
                             .RemainingRets()
                             .Attrs<ffi::Dictionary>()
                             .To(kKernel)
                             .release();
  return handler->Call(frame);
}

#define EXPORTED(name, kernel)                                                                       \
  extern "C" __attribute__((visibility("default"))) XLA_FFI_Error* name(XLA_FFI_CallFrame* frame) { \
    return neuroscope::call<kernel>(frame);                                                          \
  }

// An operand or a result, which there is; of the type that its user has checked.
struct Array {
  Array(ffi::RemainingArgs& args, size_t i) : buffer(*args.get<ffi::AnyBuffer>(i)) {}
  Array(ffi::RemainingRets& rets, size_t i) : buffer(**rets.get<ffi::AnyBuffer>(i)) {}

  int64_t rank() const { return buffer.dimensions().size(); }
  int64_t operator[](int64_t axis) const { return buffer.dimensions()[axis]; }
  ffi::DataType type() const { return buffer.element_type(); }
  bool is(ffi::DataType type, std::initializer_list<int64_t> shape) const {
    auto dimensions = buffer.dimensions();
    return buffer.element_type() == type && std::equal(dimensions.begin(), dimensions.end(), shape.begin(), shape.end());
  }
  template <typename T>
  T* data() const {
    return static_cast<T*>(buffer.untyped_data());
  }

  ffi::AnyBuffer buffer;
};

class XlaThreads : public Threads {
 public:
  explicit XlaThreads(ffi::ThreadPool& pool) : pool_(pool) {}
  int64_t count() const override { return pool_.num_threads(); }
  void schedule(std::function<void()> work) override { pool_.Schedule(std::move(work)); }

 private:
  ffi::ThreadPool& pool_;
};

// Does the work of a kernel; where memory runs out that is an error of the computation, as in XLA's own operations, and
// not the end of the process.
template <typename Work>
ffi::Error done(const Work& work) {
  try {
    work();
    return ffi::Error::Success();
  } catch (const std::bad_alloc&) {
    return ffi::Error(ffi::ErrorCode::kResourceExhausted, "Out of memory in a native kernel");
  }
}

}  // namespace neuroscope
