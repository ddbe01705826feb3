// Entries of the tables of the processor that move numbers, or round once for each: the bits leave
// no choice and memory sets the pace, so one baseline source serves every level. Any thread.
#pragma once

#include "kernels/row_shapes.hpp"

#include <cstdint>

namespace troupe::kernels::plain {

void copy_rows(const CopyRows& c, std::int64_t begin, std::int64_t end);
void add_rows(const AddRows& a, std::int64_t row_begin, std::int64_t row_end);
void zero(float* x, std::int64_t begin, std::int64_t end);
void embed_rows(const EmbedRows& e, std::int64_t row_begin, std::int64_t row_end);
void embed_grad(const EmbedGrad& e, std::int64_t begin, std::int64_t end);

}  // namespace troupe::kernels::plain
