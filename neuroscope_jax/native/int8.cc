// The kernel of int8 weights.

#include "products.h"

namespace neuroscope {

template void product(Threads&, const float*, const Int8*, int64_t, int64_t, int64_t, float*, const float*);

}  // namespace neuroscope
