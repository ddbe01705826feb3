// Declares the host side of each operation (kernels/ops.def) on a device. It enqueues kernels on
// the stream of the device that the calling thread has entered; it checks no operands but the head
// size of attention. Operations that return a number wait for it.
#pragma once

#include "kernels/ops.hpp"

namespace troupe::kernels::cuda {

#define TROUPE_OP(result, name, parameters) result name parameters;
#include "kernels/ops.def"

// Like fma_probe, but on tensor cores with bfloat16 pairs. *sink receives one thread's sum: 32 * 16
// * rounds.
double mma_probe(std::int64_t rounds, float* sink);

const Ops& table();

}  // namespace troupe::kernels::cuda
