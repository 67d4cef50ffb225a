// How a kernel is seen from outside.

#pragma once

#include <new>

#include "xla/ffi/api/ffi.h"

#define EXPORTED extern "C" __attribute__((visibility("default"))) XLA_FFI_Error*

namespace neuroscope {

// Does the work of a kernel; where memory runs out that is an error of the computation, as in XLA's own operations, and
// not the end of the process.
template <typename Work>
xla::ffi::Error done(const Work& work) {
  try {
    work();
    return xla::ffi::Error::Success();
  } catch (const std::bad_alloc&) {
    return xla::ffi::Error(xla::ffi::ErrorCode::kResourceExhausted, "Out of memory in a native kernel");
  }
}

}  // namespace neuroscope
