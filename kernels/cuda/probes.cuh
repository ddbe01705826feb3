// What the device can do, measured (kernels/calibrate.hpp). All wait for their number.
#pragma once

#include <cstdint>

namespace troupe::kernels::cuda {

double fma_probe(std::int64_t rounds, float* sink);
// As fma_probe, on tensor cores: products of bfloat16 pairs, *sink is a thread's sum: 32 * 16 *
// rounds.
double mma_probe(std::int64_t rounds, float* sink);
float read_probe(const float* x, std::int64_t count);

}  // namespace troupe::kernels::cuda
