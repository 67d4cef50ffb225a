// Products of many rows, in tiles.

#include <cstdlib>

#include "tiles.h"

namespace neuroscope {

// That they are quicker than XLA is measured on AVX2 alone; other builds have none.
#if defined(__AVX2__) && defined(__FMA__) && !defined(__AVX512F__)
constexpr bool kTiles = true;
#else
constexpr bool kTiles = false;
#endif
constexpr int64_t kFewRows = 48;  // for which products.h is quicker

int64_t room_for_tiles(int64_t rows, int64_t in) { return kTiles && rows > kFewRows ? whole_tiles(rows) * in : 0; }

template <typename X, typename W>
void product_in_tiles(Threads& threads, const X* x, const W* weight, int64_t rows, int64_t in, int64_t out, float* room,
                      float* y) {
  if constexpr (kTiles) {
    const RowPanels panels(threads, x, rows, in, room);
    int64_t blocks = (out + kBlockRows - 1) / kBlockRows, each = rows_a_task(threads, rows, blocks);
    Crew::run(threads, blocks * ((rows + each - 1) / each), [&](int64_t task) {
      int64_t o = task % blocks * kBlockRows, r = task / blocks * each;
      block_in_tiles(panels, weight + o * in, r, std::min(rows, r + each), in, std::min(out - o, kBlockRows), y + o,
                     out);
    });
  } else {
    std::abort();  // there is room for nothing
  }
}

template void product_in_tiles(Threads&, const float*, const float*, int64_t, int64_t, int64_t, float*, float*);
template void product_in_tiles(Threads&, const float*, const BFloat16*, int64_t, int64_t, int64_t, float*, float*);
template void product_in_tiles(Threads&, const BFloat16*, const BFloat16*, int64_t, int64_t, int64_t, float*, float*);

extern "C" __attribute__((visibility("default"))) int64_t neuroscope_room_for_tiles(int64_t rows, int64_t in) {
  return room_for_tiles(rows, in);
}

}  // namespace neuroscope
