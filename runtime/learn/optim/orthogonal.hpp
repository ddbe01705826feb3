// The nearest matrix with orthogonal rows or columns, about: what Muon makes of a momentum. Used on
// the trainer's thread; products on the team.
#pragma once

#include "runtime/core/buffer.hpp"
#include "runtime/core/team.hpp"

#include <cstdint>

namespace troupe::learn {

class Orthogonalizer {
 public:
  explicit Orthogonalizer(core::TeamRunner& team) : team_(team) {}

  // Replaces x [rows, columns] by `steps` steps of the quintic Newton-Schulz iteration (Jordan et
  // al. 2024) from X = x / (|x| + 1e-7):
  //   A = X X^T (X^T X, if that is smaller);  X = 3.4445 X + (-4.775 A + 2.0315 A A) X
  // whose singular values come near 1. f32; the sum of each product runs over k in ascending order,
  // so the bits depend on nothing else. A matrix of zeros stays as it is.
  void run(float* x, std::int64_t rows, std::int64_t columns, std::int64_t steps);

 private:
  struct Product;
  void step(float* x, std::int64_t rows, std::int64_t columns);
  // C (+)= A B, with B packed as it is, or transposed.
  void multiply(const Product& product);
  void scale(const float* from, float by, float* to, std::int64_t count);

  core::TeamRunner& team_;
  core::Buffer<float> square_, scaled_, next_, panels_;
};

}  // namespace troupe::learn
