// What XLA calls for quantised weights: a library of its own, compiled where one is served.

#include <cstdint>

#include "exported.h"
#include "kernels.h"

namespace neuroscope {

namespace {

ffi::Error scaled_product_kernel(ffi::ThreadPool pool, ffi::RemainingArgs args, ffi::RemainingRets rets,
                                 ffi::Dictionary) {
  if (args.size() != 3 || rets.size() != 1) return ffi::Error::InvalidArgument("expected x, weight and scales");
  Array x(args, 0), weight(args, 1), scales(args, 2), y(rets, 0);
  if (x.rank() != 2 || weight.rank() != 2 || !x.is(ffi::F32, {x[0], weight[1]}) ||
      !weight.is(ffi::S8, {weight[0], weight[1]}) || !scales.is(ffi::F32, {weight[0]}) ||
      !y.is(ffi::F32, {x[0], weight[0]}))
    return ffi::Error::InvalidArgument("expected float32 x [rows, in], int8 weight [out, in], float32 scales [out]");
  XlaThreads threads(pool);
  return done([&] {
    product(threads, x.data<const float>(), weight.data<const Int8>(), x[0], x[1], weight[0], y.data<float>(),
            scales.data<const float>());
  });
}

}  // namespace
}  // namespace neuroscope

EXPORTED(neuroscope_scaled_product, neuroscope::scaled_product_kernel)
