// What XLA calls: products, attention and the gate of an MLP, with their operands checked.

#include <cstdint>

#include "product_called.h"

namespace neuroscope {

namespace {

ffi::Error product_kernel(ffi::ThreadPool pool, ffi::RemainingArgs args, ffi::RemainingRets rets, ffi::Dictionary) {
  if (args.size() != 2 || rets.size() != 2) return ffi::Error::InvalidArgument("expected x and weight; y and room");
  Array x(args, 0), weight(args, 1), y(rets, 0), room(rets, 1);
  if (x.rank() != 2 || weight.rank() != 2 || x[1] != weight[1] || !y.is(ffi::F32, {x[0], weight[0]}))
    return ffi::Error::InvalidArgument("expected x [rows, in] and weight [out, in]");
  if (x.type() == ffi::F32 && weight.type() == ffi::F32) return product_of<float, float>(pool, x, weight, y, room);
  if (x.type() == ffi::F32 && weight.type() == ffi::BF16) return product_of<float, BFloat16>(pool, x, weight, y, room);
  if (x.type() == ffi::BF16 && weight.type() == ffi::F32) return product_of<BFloat16, float>(pool, x, weight, y, room);
  if (x.type() == ffi::BF16 && weight.type() == ffi::BF16)
    return product_of<BFloat16, BFloat16>(pool, x, weight, y, room);
  return ffi::Error::InvalidArgument("expected float32 or bfloat16");
}

ffi::Error product_where_kernel(ffi::ThreadPool pool, ffi::RemainingArgs args, ffi::RemainingRets rets,
                                ffi::Dictionary) {
  if (args.size() != 3 || rets.size() != 1) return ffi::Error::InvalidArgument("expected x, weight and wanted");
  Array x(args, 0), weight(args, 1), wanted(args, 2), y(rets, 0);
  if (weight.rank() != 2 || !x.is(ffi::F32, {1, weight[1]}) || !weight.is(ffi::F32, {weight[0], weight[1]}) ||
      !wanted.is(ffi::PRED, {weight[0]}) || !y.is(ffi::F32, {1, weight[0]}))
    return ffi::Error::InvalidArgument("expected float32 x [1, in] and weight [out, in], and wanted [out]");
  XlaThreads threads(pool);
  return done([&] {
    product_where(threads, x.data<const float>(), weight.data<const float>(), wanted.data<const bool>(), weight[1],
                  weight[0], y.data<float>());
  });
}

template <typename W>
ffi::Error attention_of(ffi::ThreadPool& pool, const Shape& shape, const Array& query, const Array& key,
                        const Array& value, const Array& out) {
  XlaThreads threads(pool);
  return done([&] {
    attend(threads, shape, query.data<const W>(), key.data<const W>(), value.data<const W>(), out.data<float>());
  });
}

ffi::Error attention_kernel(ffi::ThreadPool pool, ffi::RemainingArgs args, ffi::RemainingRets rets,
                            ffi::Dictionary attributes) {
  auto scale = attributes.get<float>("scale"), cap = attributes.get<float>("cap");
  auto window = attributes.get<int64_t>("window");
  if (args.size() != 4 || rets.size() != 1 || !scale || !cap || !window)
    return ffi::Error::InvalidArgument("expected query, key, value and start; scale, cap and window");
  Array query(args, 0), key(args, 1), value(args, 2), start(args, 3), out(rets, 0);
  auto type = query.type();
  if (query.rank() != 4 || key.rank() != 4 || query[0] != 1 || key[0] != 1 || query[3] != key[3] ||
      query[2] % key[2] != 0 || key.type() != type || !value.is(type, {1, key[1], key[2], key[3]}) ||
      !start.is(ffi::S32, {}) || !out.is(ffi::F32, {1, query[1], query[2], query[3]}))
    return ffi::Error::InvalidArgument(
        "expected query [1, T, N, H], key and value [1, S, K, H], N a multiple of K, of a type");
  Shape shape{query[1], query[2], query[3], key[1], key[2], *start.data<const int32_t>(), *scale, *cap, *window};
  if (shape.T == 0) return ffi::Error::Success();
  if (!shape.fits())
    return ffi::Error::InvalidArgument("the cache has no slot for a query's position");
  if (type == ffi::F32) return attention_of<float>(pool, shape, query, key, value, out);
  if (type == ffi::BF16) return attention_of<BFloat16>(pool, shape, query, key, value, out);
  return ffi::Error::InvalidArgument("expected float32 or bfloat16");
}

ffi::Error gated_kernel(ffi::ThreadPool pool, ffi::RemainingArgs args, ffi::RemainingRets rets, ffi::Dictionary) {
  if (args.size() != 2 || rets.size() != 1) return ffi::Error::InvalidArgument("expected gate and up");
  Array gate(args, 0), up(args, 1), out(rets, 0);
  int64_t count = out.buffer.element_count();
  if (gate.type() != ffi::F32 || up.type() != ffi::F32 || gate.buffer.element_count() != size_t(count) ||
      up.buffer.element_count() != size_t(count))
    return ffi::Error::InvalidArgument("expected float32 gate and up, as large as the result");
  XlaThreads threads(pool);
  const float *of_gate = gate.data<const float>(), *of_up = up.data<const float>();
  if (out.type() == ffi::F32) return done([&] { gated(threads, of_gate, of_up, count, out.data<float>()); });
  if (out.type() == ffi::BF16) return done([&] { gated(threads, of_gate, of_up, count, out.data<BFloat16>()); });
  return ffi::Error::InvalidArgument("expected float32 or bfloat16");
}

}  // namespace
}  // namespace neuroscope

EXPORTED(neuroscope_product, neuroscope::product_kernel)
EXPORTED(neuroscope_product_where, neuroscope::product_where_kernel)
EXPORTED(neuroscope_attention, neuroscope::attention_kernel)
EXPORTED(neuroscope_gated, neuroscope::gated_kernel)
