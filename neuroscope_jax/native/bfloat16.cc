// The kernels of bfloat16 weights and caches.

#include "attention.h"
#include "gated.h"
#include "products.h"

namespace neuroscope {

template void product(Threads&, const float*, const BFloat16*, int64_t, int64_t, int64_t, float*, const float*);
template void product(Threads&, const BFloat16*, const BFloat16*, int64_t, int64_t, int64_t, float*,
                      const float*);
template void attend(Threads&, const Shape&, const BFloat16*, const BFloat16*, const BFloat16*, float*);
template void gated(Threads&, const float*, const float*, int64_t, BFloat16*);

}  // namespace neuroscope
