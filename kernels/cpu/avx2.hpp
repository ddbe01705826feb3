// The table of the avx2 level, compiled with that level's instructions: call only where the
// processor has them (dispatch.cpp asks).
#pragma once

#include "kernels/ops.hpp"

namespace troupe::kernels::avx2 {

extern const Ops kOps;

}  // namespace troupe::kernels::avx2
