// Softmax over the vocabulary (kernels/ops.hpp); on the entered device's stream.
#pragma once

#include "kernels/ops.hpp"

namespace troupe::kernels::cuda {

void softcap(float* x, std::int64_t ld, std::int64_t rows, std::int64_t count, float cap);
void vocab_stats(
    const float* logits, std::int64_t count, float inv_temperature, float* max, float* sum);
// Waits for its number.
float vocab_weighted(const float* logits, std::int64_t count, float inv_temperature, float lse);
void vocab_sums(const VocabRows& v,
                std::int64_t row_begin,
                std::int64_t row_end,
                std::int64_t block_begin,
                std::int64_t block_end);
void vocab_finish(const VocabFinish& v, std::int64_t row_begin, std::int64_t row_end);
void vocab_grad(const VocabGrad& v,
                std::int64_t row_begin,
                std::int64_t row_end,
                std::int64_t block_begin,
                std::int64_t block_end);

}  // namespace troupe::kernels::cuda
