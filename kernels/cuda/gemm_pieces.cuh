// The product of kernels/row_shapes.hpp: PieceGemm; on the entered device's stream.
#pragma once

#include "kernels/row_shapes.hpp"

namespace troupe::kernels::cuda {

void gemm_in_pieces(const PieceGemm& g,
                    std::int64_t m_begin,
                    std::int64_t m_end,
                    std::int64_t n_begin,
                    std::int64_t n_end);

}  // namespace troupe::kernels::cuda
