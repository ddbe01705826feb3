// Entries of the tables of the processor that move numbers, or round once for each: the bits leave
// no choice and memory sets the pace, so one baseline source serves every level. Any thread.
#pragma once

#include "kernels/row_shapes.hpp"

namespace troupe::kernels::plain {

void copy_rows(const CopyRows& c, Range rows);
void add_rows(const AddRows& a, Range rows);
void zero(float* x, Range elements);
void embed_rows(const EmbedRows& e, Range rows);
void embed_grad(const EmbedGrad& e, Range columns);

}  // namespace troupe::kernels::plain
