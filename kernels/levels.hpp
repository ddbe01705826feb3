// The tables of the processor's levels. Each vector level is compiled for its own instruction set:
// call only those that the processor supports (see kernels/dispatch.hpp).
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
