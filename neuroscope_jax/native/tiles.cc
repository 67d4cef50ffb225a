// Products of many rows with weights of floats, in tiles.

#include "chosen_tiles.h"

namespace neuroscope {

PRODUCTS_IN_TILES(float, float)
PRODUCTS_IN_TILES(float, BFloat16)
PRODUCTS_IN_TILES(BFloat16, float)
PRODUCTS_IN_TILES(BFloat16, BFloat16)

}  // namespace neuroscope

extern "C" __attribute__((visibility("default"))) int64_t neuroscope_room_for_tiles(int64_t rows, int64_t in,
                                                                                    int x_bytes, int weight_bytes) {
  using namespace neuroscope;
  if (x_bytes == sizeof(float))
    return weight_bytes == sizeof(float) ? room_for_tiles<float, float>(rows, in) : room_for_tiles<float, BFloat16>(rows, in);
  return weight_bytes == sizeof(float) ? room_for_tiles<BFloat16, float>(rows, in)
                                       : room_for_tiles<BFloat16, BFloat16>(rows, in);
}
