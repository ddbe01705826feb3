// The gradient of attention (kernels/shapes.hpp: AttentionBackward); on the entered device's
// stream.
#pragma once

#include "kernels/shapes.hpp"

namespace troupe::kernels::cuda {

// Tables of the segments of a unit name a block of the pool at most once each.
void attention_backward(const AttentionBackward& a, const AttentionUnit* units, std::int64_t count);

}  // namespace troupe::kernels::cuda
