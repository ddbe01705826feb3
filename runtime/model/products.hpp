// The two products of a linear map's backward pass. For Y [m, n] = X W^T with X [m, k], W [n, k]:
//   input_grad   dX [m, k] = dY W       members split the columns of dX; W is read as stored
//   weight_grad  dW [n, k] += dY^T X    members split the rows of dW; dY is read by columns
// Members split outputs, so the bits do not depend on the size of the team. The functions contain
// no barriers; callers put one between a write and its readers. Internal to this room.
#pragma once

#include "runtime/core/buffer.hpp"
#include "runtime/core/team.hpp"

#include <cstdint>

namespace troupe::model {

// One member's scratch for input_grad: the sums of one piece of a long product, at most kPieceRows
// rows.
class ProductScratch {
 public:
  // Allocates in the team's memory. Call it outside parallel regions. `rows`: the most rows of a
  // dY; `n`: the columns of the widest dY; `columns`: those of the widest dX that belongs to it.
  void reserve(core::Memory& memory, std::int64_t rows, std::int64_t n, std::int64_t columns);
  float* sums() { return sums_.data(); }

 private:
  core::Buffer<float> sums_;
};

// A row-major matrix: `rows` rows of `columns` numbers, `ld` numbers apart.
struct Matrix {
  const float* data = nullptr;
  std::int64_t rows = 0, columns = 0, ld = 0;
};

// dx [dy.rows, w.columns] = dy * w; w is [dy.columns, ...].
void input_grad(
    core::Team team, Matrix dy, Matrix w, float* dx, std::int64_t lddx, ProductScratch& scratch);

// Packs x into f32 panels for `weight_grad`; every member packs its share of them. `packed` has
// room for kernels::packed_size(x.columns, x.rows) floats.
void pack_input(core::Team team, Matrix x, float* packed);

// dw [dy.columns, columns] += dy^T * x, with x [dy.rows, columns] packed by `pack_input`.
void weight_grad(
    core::Team team, Matrix dy, const float* packed_x, std::int64_t columns, float* dw);

}  // namespace troupe::model
