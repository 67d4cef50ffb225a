// The kernels of int8 weights.

#include "chosen_tiles.h"
#include "products.h"

namespace neuroscope {

template void product(Threads&, const float*, const Int8*, int64_t, int64_t, int64_t, float*, const float*);
template void product(Threads&, const BFloat16*, const Int8*, int64_t, int64_t, int64_t, float*, const float*);
PRODUCTS_IN_TILES(float, Int8)
PRODUCTS_IN_TILES(BFloat16, Int8)

}  // namespace neuroscope

extern "C" __attribute__((visibility("default"))) int64_t neuroscope_room_for_tiles(int64_t rows, int64_t in,
                                                                                    int x_bytes, int) {
  using namespace neuroscope;
  return x_bytes == sizeof(float) ? room_for_tiles<float, Int8>(rows, in) : room_for_tiles<BFloat16, Int8>(rows, in);
}
