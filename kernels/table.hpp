// Defines the table (Ops) of a level. Include it at the end of the level's source, after the
// functions that kernels/ops.def lists.
#pragma once

#include "kernels/batches.hpp"
#include "kernels/levels.hpp"

namespace troupe::kernels::TROUPE_KERNEL_LEVEL {

#define TROUPE_TEXT_OF(name) #name
#define TROUPE_TEXT(name) TROUPE_TEXT_OF(name)
#define TROUPE_OP(result, name, parameters) .name = name,
constinit const Ops kOps{
    .name = TROUPE_TEXT(TROUPE_KERNEL_LEVEL),
    .head_blocks = 1,
#include "kernels/ops.def"
};

}  // namespace troupe::kernels::TROUPE_KERNEL_LEVEL
