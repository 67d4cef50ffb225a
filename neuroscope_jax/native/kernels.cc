// What XLA calls: the kernels behind its foreign function interface, with their operands checked.

#include <algorithm>
#include <cstdint>

#include "attention.h"
#include "exported.h"
#include "products.h"
#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

namespace {

using namespace neuroscope;

template <typename T>
const T* data(ffi::AnyBuffer& buffer) {
  return static_cast<const T*>(buffer.untyped_data());
}

template <typename X, typename W>
ffi::Error product_of(ffi::ThreadPool& pool, ffi::AnyBuffer& x, ffi::AnyBuffer& weight, float* y) {
  auto of_x = x.dimensions(), of_weight = weight.dimensions();
  return done([&] { product(pool, data<X>(x), data<W>(weight), of_x[0], of_x[1], of_weight[0], y); });
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

ffi::Error product_where_impl(ffi::ThreadPool pool, ffi::BufferR2<ffi::F32> x, ffi::BufferR2<ffi::F32> weight,
                              ffi::BufferR1<ffi::PRED> wanted, ffi::ResultBufferR2<ffi::F32> y) {
  auto of_x = x.dimensions(), of_weight = weight.dimensions();
  if (of_x[0] != 1 || of_x[1] != of_weight[1] || wanted.dimensions()[0] != of_weight[0])
    return ffi::Error::InvalidArgument("expected x [1, in], weight [out, in] and wanted [out]");
  return done([&] {
    product_where(pool, x.typed_data(), weight.typed_data(), wanted.typed_data(), of_x[1], of_weight[0], y->typed_data());
  });
}

template <typename W>
ffi::Error attend(ffi::ThreadPool& pool, const Shape& shape, ffi::AnyBuffer& query, ffi::AnyBuffer& key,
                  ffi::AnyBuffer& value, float* out) {
  return done([&] { Attention<W>(shape, data<W>(query), data<W>(key), data<W>(value)).run(pool, out); });
}

ffi::Error attention_impl(ffi::ThreadPool pool, ffi::AnyBuffer query, ffi::AnyBuffer key, ffi::AnyBuffer value,
                          ffi::BufferR0<ffi::S32> start, ffi::ResultBufferR4<ffi::F32> out, float scale, float cap,
                          int64_t window) {
  auto of_query = query.dimensions(), of_key = key.dimensions();
  auto type = query.element_type();
  auto of_value = value.dimensions();
  if (of_query.size() != 4 || of_key.size() != 4 || of_query[0] != 1 || of_key[0] != 1 || of_query[3] != of_key[3] ||
      of_query[2] % of_key[2] != 0 ||
      !std::equal(of_value.begin(), of_value.end(), of_key.begin(), of_key.end()) || key.element_type() != type ||
      value.element_type() != type)
    return ffi::Error::InvalidArgument("expected query [1, T, N, H], key and value [1, S, K, H], N a multiple of K, of a type");
  Shape shape{of_query[1], of_query[2], of_query[3], of_key[1], of_key[2], *start.typed_data(), scale, cap, window};
  if (shape.T == 0) return ffi::Error::Success();
  if (shape.start < 0 || shape.end(shape.T - 1) > shape.S)
    return ffi::Error::InvalidArgument("the cache has no slot for a query's position");
  if (type == ffi::F32) return attend<float>(pool, shape, query, key, value, out->typed_data());
  if (type == ffi::BF16) return attend<BFloat16>(pool, shape, query, key, value, out->typed_data());
  return ffi::Error::InvalidArgument("expected float32 or bfloat16");
}

}  // namespace

EXPORTED neuroscope_product(XLA_FFI_CallFrame* frame) {
  static auto* handler =
      ffi::Ffi::Bind().Ctx<ffi::ThreadPool>().Arg<ffi::AnyBuffer>().Arg<ffi::AnyBuffer>().Ret<ffi::BufferR2<ffi::F32>>()
          .To(product_impl).release();
  return handler->Call(frame);
}

EXPORTED neuroscope_product_where(XLA_FFI_CallFrame* frame) {
  static auto* handler = ffi::Ffi::Bind()
                             .Ctx<ffi::ThreadPool>()
                             .Arg<ffi::BufferR2<ffi::F32>>()
                             .Arg<ffi::BufferR2<ffi::F32>>()
                             .Arg<ffi::BufferR1<ffi::PRED>>()
                             .Ret<ffi::BufferR2<ffi::F32>>()
                             .To(product_where_impl)
                             .release();
  return handler->Call(frame);
}

EXPORTED neuroscope_attention(XLA_FFI_CallFrame* frame) {
  static auto* handler = ffi::Ffi::Bind()
                             .Ctx<ffi::ThreadPool>()
                             .Arg<ffi::AnyBuffer>()
                             .Arg<ffi::AnyBuffer>()
                             .Arg<ffi::AnyBuffer>()
                             .Arg<ffi::BufferR0<ffi::S32>>()
                             .Ret<ffi::BufferR4<ffi::F32>>()
                             .Attr<float>("scale")
                             .Attr<float>("cap")
                             .Attr<int64_t>("window")
                             .To(attention_impl)
                             .release();
  return handler->Call(frame);
}
