// In which tiles, if in any, a product is done here.

#pragma once

#include <cstdint>
#include <cstdlib>
#include <type_traits>

#include "matrix_tiles.h"
#include "tiles.h"
#include "vector_tiles.h"

namespace neuroscope {

// That they are quicker than XLA is measured on AVX2, AVX-512 and AMX alone; other builds have none.
#if defined(__AVX2__) && defined(__FMA__)
constexpr bool kTiles = true;
#else
constexpr bool kTiles = false;
#endif

// Calls `work` with the tiles that are quickest for these.
template <typename X, typename W, typename Work>
auto with_tiles(const Work& work) {
#if defined(NEUROSCOPE_MATRIX_TILES)
  if constexpr (!(std::is_same_v<X, float> && std::is_same_v<W, float>)) {
    if (matrices_permitted()) return work(MatrixTiles<X, W>());
  }
#endif
  return work(VectorTiles());
}

template <typename X, typename W>
int64_t room_for_tiles(int64_t rows, int64_t in) {
  if (!kTiles) return 0;
  return with_tiles<X, W>([=](auto tiles) {
    using Tiles = decltype(tiles);
    return rows > Tiles::kFewRows ? room_for<Tiles>(rows, in) : 0;
  });
}

template <typename X, typename W>
void product_in_tiles(Threads& threads, const X* x, const W* weight, int64_t rows, int64_t in, int64_t out, float* room,
                      float* y, const float* scales) {
  if constexpr (kTiles) {
    with_tiles<X, W>([&](auto tiles) { multiply<decltype(tiles)>(threads, x, weight, rows, in, out, room, y, scales); });
  } else {
    std::abort();  // there is room for nothing
  }
}

#define PRODUCTS_IN_TILES(X, W)                                                                           \
  template int64_t room_for_tiles<X, W>(int64_t, int64_t);                                                \
  template void product_in_tiles(Threads&, const X*, const W*, int64_t, int64_t, int64_t, float*, float*, \
                                 const float*);

}  // namespace neuroscope
