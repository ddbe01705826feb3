// What is done for each token's place: the embedding, rotary positions, and the traffic of keys and
// values between rows and slots.
#pragma once

#include "kernels/ops.hpp"

namespace troupe::kernels::cuda {

void embed_rows(const EmbedRows& e, std::int64_t row_begin, std::int64_t row_end);
void rope(float* x,
          std::int64_t ldx,
          std::int64_t heads,
          std::int64_t head_dim,
          std::int64_t rotary,
          const std::int32_t* positions,
          const float* cos,
          const float* sin,
          bool inverse,
          std::int64_t row_begin,
          std::int64_t row_end);
void kv_write(const KvWrite& w, std::int64_t row_begin, std::int64_t row_end);

}  // namespace troupe::kernels::cuda
