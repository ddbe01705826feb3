#include "kernels/plain_rows.hpp"

#include <cstring>

namespace troupe::kernels::plain {
namespace {

std::size_t bytes_of(std::int64_t count) {
  return static_cast<std::size_t>(count) * sizeof(float);
}

}  // namespace

void copy_rows(const CopyRows& c, Range rows) {
  for (std::int64_t i = rows.begin; i < rows.end; ++i) {
    const std::int64_t from = c.from_row != nullptr ? c.from_row[i] : i;
    const std::int64_t to = c.to_row != nullptr ? c.to_row[i] : i;
    std::memcpy(c.to + to * c.ldt, c.from + from * c.ldf, bytes_of(c.columns));
  }
}

void add_rows(const AddRows& a, Range rows) {
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const float *const x = a.a + row * a.lda, *const y = a.b + row * a.ldb;
    float* const out = a.out + row * a.ldo;
#pragma GCC ivdep  // operands overlap only at the same index
    for (std::int64_t i = 0; i < a.columns; ++i)
      out[i] = x[i] + y[i];
  }
}

void zero(float* x, Range elements) {
  if (!elements.empty()) std::memset(x + elements.begin, 0, bytes_of(elements.size()));
}

void scale(const float* x, float by, float* y, Range elements) {
#pragma GCC ivdep  // y is x, or does not overlap it
  for (std::int64_t i = elements.begin; i < elements.end; ++i)
    y[i] = by * x[i];
}

void embed_rows(const EmbedRows& e, Range rows) {
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    float* const out = e.x + row * e.hidden;
    const std::int64_t token = e.tokens[row];
    if (e.table != nullptr) {
      for (std::int64_t i = 0; i < e.hidden; ++i)
        out[i] = e.table[token * e.hidden + i] * e.scale;
      continue;
    }
    unpack_column(e.panels, e.hidden, token, out);
    for (std::int64_t i = 0; e.scale != 1.0f && i < e.hidden; ++i)
      out[i] *= e.scale;
  }
}

void embed_grad(const EmbedGrad& e, Range columns) {
  for (std::int64_t row = 0; row < e.rows; ++row) {
    if (e.tokens[row] == e.skipped) continue;
    float* const out = e.table + e.tokens[row] * e.hidden;
    const float* const in = e.dx + row * e.hidden;
    for (std::int64_t i = columns.begin; i < columns.end; ++i)
      out[i] += in[i] * e.scale;
  }
}

}  // namespace troupe::kernels::plain
