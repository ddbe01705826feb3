// The tables of the processor's levels. The vector levels are compiled with their own instructions:
// call only what the processor has (kernels/dispatch.hpp asks).
#pragma once

#include "kernels/ops.hpp"

namespace troupe::kernels {

namespace reference {
extern const Ops kOps;
}
namespace avx2 {
extern const Ops kOps;
}
namespace avx512 {
extern const Ops kOps;
}

}  // namespace troupe::kernels
