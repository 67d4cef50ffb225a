// A product as XLA calls it, of any types.

#pragma once

#include "exported.h"
#include "kernels.h"

namespace neuroscope {

template <typename X, typename W>
ffi::Error product_of(ffi::ThreadPool& pool, const Array& x, const Array& weight, const Array& y, const Array& room,
                      const float* scales = nullptr) {
  if (!room.is(ffi::F32, {0}) && !room.is(ffi::F32, {room_for_tiles<X, W>(x[0], x[1])}))
    return ffi::Error::InvalidArgument("expected room for tiles, or none");
  XlaThreads threads(pool);
  const X* of_x = x.data<const X>();
  const W* of_weight = weight.data<const W>();
  float *of_y = y.data<float>(), *of_room = room.data<float>();
  return done([&] {
    if (room[0] == 0) product(threads, of_x, of_weight, x[0], x[1], weight[0], of_y, scales);
    else product_in_tiles(threads, of_x, of_weight, x[0], x[1], weight[0], of_room, of_y, scales);
  });
}

}  // namespace neuroscope
