// The score head, both ways: value[row] = head_in[row] . w, one number for each head row (a reward
// model's score of a sequence, a critic's value of a position). The product is the kernels' packed
// one over a single column, so a value has the same bits in any batch, on any number of threads and
// with any instruction set. Scratch is prepared outside a region; the passes are called by every
// member of the team. Memory: a chunk of at most kValueRows_max packed rows.
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

// values[row] of head_in [rows, hidden]; all in the team's memory.
void value_forward(core::Team team,
                   const PackedWeights& weights,
                   const float* head_in,
                   std::int64_t rows,
                   float* values);

// The values and, where a backward pass follows, what only it needs.
struct ValueScratch {
  core::Buffer<float> values, dvalues;  // [rows]
  core::Buffer<float> packed_rows;
  std::vector<ProductScratch> products;
  // Outside a region.
  void prepare(core::TeamRunner& team, const ModelSpec& spec, std::int64_t rows, bool backward);
};

struct ValueGrad {
  const float* head_in = nullptr;  // [rows, hidden], as the forward read it
  std::int64_t rows = 0;
  const float* dvalues = nullptr;  // [rows]
  const ParamStore& master;
  ParamStore& grads;          // the head's gradient is added, unless it is frozen
  float* dhead_in = nullptr;  // [rows, hidden], written
};

void value_backward(core::Team team, const ValueGrad& grad, ValueScratch& scratch);

}  // namespace troupe::model
