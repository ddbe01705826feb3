// Matrices into panels (kernels/panels.hpp).
#pragma once

#include "kernels/ops.hpp"

namespace troupe::kernels::cuda {

void pack_transposed(const float* w,
                     std::int64_t ldw,
                     std::int64_t n,
                     std::int64_t k,
                     const PanelRoom& to,
                     std::int64_t panel_begin,
                     std::int64_t panel_end);
void pack_plain(const float* x,
                std::int64_t ldx,
                std::int64_t n,
                std::int64_t k,
                float* panels,
                std::int64_t panel_begin,
                std::int64_t panel_end);

}  // namespace troupe::kernels::cuda
