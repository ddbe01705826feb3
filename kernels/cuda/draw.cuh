// Draws on the device (kernels/cuda/device.hpp: Draws).
#pragma once

#include "kernels/cuda/device.hpp"

namespace troupe::kernels::cuda {

void draw_rows(const Draws& draws, std::int64_t count);

}  // namespace troupe::kernels::cuda
