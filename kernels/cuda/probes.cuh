// What the device can do, measured (kernels/calibrate.hpp). Both wait for their number.
#pragma once

#include <cstdint>

namespace troupe::kernels::cuda {

double fma_probe(std::int64_t rounds, float* sink);
float read_probe(const float* x, std::int64_t count);

}  // namespace troupe::kernels::cuda
