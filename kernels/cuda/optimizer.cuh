// The optimiser and the checks of a gradient (kernels/ops.hpp); on the entered device's stream.
#pragma once

#include "kernels/ops.hpp"

namespace troupe::kernels::cuda {

void adamw(const AdamW& a, std::int64_t begin, std::int64_t end);
void sum_squares(
    const float* x, std::int64_t count, double* sums, std::int64_t begin, std::int64_t end);
// Waits for its answer.
bool all_finite(const float* x, std::int64_t count);

}  // namespace troupe::kernels::cuda
