// Forward and backward pass of the score head: value[row] = head_in[row] . w, one number per head
// row (a reward model's score of a sequence, a critic's value of a position). The forward pass uses
// the packed product of the kernels with a single column, so a value has the same bits in any
// batch, on any number of threads and with any instruction set. Prepare the scratch outside
// parallel regions; every member of the team calls the passes. The backward pass packs at most
// kValueRows_max rows at once.
#pragma once

#include "runtime/core/buffer.hpp"
#include "runtime/core/team.hpp"
#include "runtime/model/packed.hpp"
#include "runtime/model/params.hpp"
#include "runtime/model/products.hpp"

#include <cstdint>
#include <vector>

namespace troupe::model {

inline constexpr std::int64_t kValueRows_max = 1024;

// Computes values[row] from head_in [rows, hidden]; all in the team's memory.
void value_forward(core::Team team,
                   const PackedWeights& weights,
                   const float* head_in,
                   std::int64_t rows,
                   float* values);

// The values, and buffers that only a backward pass needs.
struct ValueScratch {
  core::Buffer<float> values, dvalues;  // [rows]
  core::Buffer<float> packed_rows;
  std::vector<ProductScratch> products;
  // Call it outside parallel regions.
  void prepare(core::TeamRunner& team, const ModelSpec& spec, std::int64_t rows, bool backward);
};

struct ValueGrad {
  const float* head_in = nullptr;  // [rows, hidden], as the forward read it
  std::int64_t rows = 0;
  const float* dvalues = nullptr;  // [rows]
  const ParamStore& master;
  ParamStore& grads;          // the head's gradient is added unless the head is frozen
  float* dhead_in = nullptr;  // [rows, hidden], written
};

void value_backward(core::Team team, const ValueGrad& grad, ValueScratch& scratch);

}  // namespace troupe::model
