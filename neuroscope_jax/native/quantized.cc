// What XLA calls for quantised weights: a library of its own, compiled where one is served.

#include <cstdint>

#include "exported.h"
#include "products.h"
#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

namespace {

using namespace neuroscope;

ffi::Error scaled_product_impl(ffi::ThreadPool pool, ffi::BufferR2<ffi::F32> x, ffi::BufferR2<ffi::S8> weight,
                               ffi::BufferR1<ffi::F32> scales, ffi::ResultBufferR2<ffi::F32> y) {
  auto of_x = x.dimensions(), of_weight = weight.dimensions();
  if (of_x[1] != of_weight[1] || scales.dimensions()[0] != of_weight[0])
    return ffi::Error::InvalidArgument("expected x [rows, in], weight [out, in] and scales [out]");
  auto* values = reinterpret_cast<const Int8*>(weight.typed_data());
  return done([&] {
    product(pool, x.typed_data(), values, of_x[0], of_x[1], of_weight[0], y->typed_data(), scales.typed_data());
  });
}

}  // namespace

EXPORTED neuroscope_scaled_product(XLA_FFI_CallFrame* frame) {
  static auto* handler = ffi::Ffi::Bind()
                             .Ctx<ffi::ThreadPool>()
                             .Arg<ffi::BufferR2<ffi::F32>>()
                             .Arg<ffi::BufferR2<ffi::S8>>()
                             .Arg<ffi::BufferR1<ffi::F32>>()
                             .Ret<ffi::BufferR2<ffi::F32>>()
                             .To(scaled_product_impl)
                             .release();
  return handler->Call(frame);
}
