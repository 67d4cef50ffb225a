// The kernels of float32 weights and caches.

#include "attention.h"
#include "gated.h"
#include "products.h"

namespace neuroscope {

template void product(Threads&, const float*, const float*, int64_t, int64_t, int64_t, float*, const float*);
template void product(Threads&, const BFloat16*, const float*, int64_t, int64_t, int64_t, float*, const float*);
template void attend(Threads&, const Shape&, const float*, const float*, const float*, float*);
template void gated(Threads&, const float*, const float*, int64_t, float*);

void product_where(Threads& threads, const float* x, const float* weight, const bool* wanted, int64_t in, int64_t out,
                   float* y) {
  const Rows<float, float> of_x(x, 1, in);
  constexpr int64_t each = 256;
  Crew::run(threads, (out + each - 1) / each, [&](int64_t task) {
    for (int64_t o = task * each; o < std::min(out, (task + 1) * each); ++o) {
      y[o] = 0.0f;
      if (wanted[o]) dot<1, 1>(of_x.row(0), of_x.stride(), weight + o * in, in, in, y + o, out);
    }
  });
}

}  // namespace neuroscope
