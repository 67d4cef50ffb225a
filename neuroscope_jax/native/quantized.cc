// What XLA calls for quantised weights: a library of its own, compiled where one is served.

#include <cstdint>

#include "product_called.h"

namespace neuroscope {

namespace {

ffi::Error scaled_product_kernel(ffi::ThreadPool pool, ffi::RemainingArgs args, ffi::RemainingRets rets,
                                 ffi::Dictionary) {
  if (args.size() != 3 || rets.size() != 2)
    return ffi::Error::InvalidArgument("expected x, weight and scales; y and room");
  Array x(args, 0), weight(args, 1), scales(args, 2), y(rets, 0), room(rets, 1);
  if (x.rank() != 2 || weight.rank() != 2 || !weight.is(ffi::S8, {weight[0], x[1]}) ||
      !scales.is(ffi::F32, {weight[0]}) || !y.is(ffi::F32, {x[0], weight[0]}))
    return ffi::Error::InvalidArgument("expected x [rows, in], int8 weight [out, in], float32 scales [out]");
  const float* of_scales = scales.data<const float>();
  if (x.type() == ffi::F32) return product_of<float, Int8>(pool, x, weight, y, room, of_scales);
  if (x.type() == ffi::BF16) return product_of<BFloat16, Int8>(pool, x, weight, y, room, of_scales);
  return ffi::Error::InvalidArgument("expected x in float32 or bfloat16");
}

}  // namespace
}  // namespace neuroscope

EXPORTED(neuroscope_scaled_product, neuroscope::scaled_product_kernel)
