// CPU operations that copy numbers, or scale and add them one by one: row copies and sums, zeroing,
// scaling, the embedding and its gradient. Vector code could not change
// their bits, and memory limits their speed, so all CPU levels share this one implementation. Any
// thread.
#pragma once

#include "kernels/row_shapes.hpp"

namespace troupe::kernels::plain {

void copy_rows(const CopyRows& c, Range rows);
void add_rows(const AddRows& a, Range rows);
void zero(float* x, Range elements);
void scale(const float* x, float by, float* y, Range elements);
void embed_rows(const EmbedRows& e, Range rows);
void embed_grad(const EmbedGrad& e, Range columns);

}  // namespace troupe::kernels::plain
