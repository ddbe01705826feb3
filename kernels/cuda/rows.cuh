// Operations on whole rows.
#pragma once

#include "kernels/ops.hpp"

namespace troupe::kernels::cuda {

void copy_rows(const CopyRows& c, std::int64_t begin, std::int64_t end);
void add_rows(const AddRows& a, std::int64_t row_begin, std::int64_t row_end);
void zero(float* x, std::int64_t begin, std::int64_t end);
void rmsnorm(const float* x,
             std::int64_t ldx,
             const float* weight,
             float eps,
             std::int64_t d,
             float* y,
             std::int64_t ldy,
             float* inv_rms,
             std::int64_t row_begin,
             std::int64_t row_end);
void rmsnorm_heads(const NormHeads& n, std::int64_t row_begin, std::int64_t row_end);

}  // namespace troupe::kernels::cuda
