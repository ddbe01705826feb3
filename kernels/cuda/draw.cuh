// Draws on the device (kernels/row_shapes.hpp: Draws).
#pragma once

#include "kernels/row_shapes.hpp"

namespace troupe::kernels::cuda {

void draw_rows(const Draws& draws, std::int64_t count);

}  // namespace troupe::kernels::cuda
