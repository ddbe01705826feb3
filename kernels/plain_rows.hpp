// CPU operations that only move numbers, or round each one once. Their bits cannot differ and
// memory limits their speed, so all levels share one baseline implementation. Any thread.
#pragma once

#include "kernels/row_shapes.hpp"

namespace troupe::kernels::plain {

void copy_rows(const CopyRows& c, Range rows);
void add_rows(const AddRows& a, Range rows);
void zero(float* x, Range elements);
void embed_rows(const EmbedRows& e, Range rows);
void embed_grad(const EmbedGrad& e, Range columns);

}  // namespace troupe::kernels::plain
