// The gradients of adapters in a layer's backward pass. For y = x W^T with W = W0 + s B A:
//   dB [rows, rank]    += dY^T (s x A^T)
//   dA [rank, columns] += (s dY B)^T x
// so no product of the size of dW is computed. Every member of the team calls `adapter_grads`, once
// for each group of linear maps that read the same x. Members split outputs, never a sum, so the
// bits do not depend on the size of the team. Nothing is allocated inside.
#pragma once

#include "runtime/core/buffer.hpp"
#include "runtime/core/team.hpp"
#include "runtime/model/lora.hpp"
#include "runtime/model/products.hpp"

#include <cstdint>
#include <span>

namespace troupe::model {

// low_x = s x A^T and low_dy = s dY B: a [rows, rank] matrix for each map with an adapter, one
// after another. `packed` is low_x packed for weight_grad.
struct AdapterScratch {
  core::Buffer<float> low_x, low_dy, packed;
  // Allocates in the team's memory. Call it outside parallel regions. Null `lora`: no room is
  // needed.
  void reserve(core::Memory& memory, const Lora* lora, std::int64_t layers, std::int64_t rows);
};

struct AdapterGrads {
  const Lora& lora;
  std::int64_t layer = 0;
  std::span<const Linear> maps;
  Matrix dy;  // gradients of the maps' outputs, side by side in the order of `maps`
  Matrix x;   // the input of all maps
  const float* packed_x = nullptr;  // x packed by pack_input
  ParamStore& grads;
};

// True when one of the maps has an adapter in this layer.
bool has_adapter(const Lora* lora, std::int64_t layer, std::span<const Linear> maps);

// Three phases with a barrier after each. The caller needs a barrier before it, so that x, packed_x
// and dy are complete.
void adapter_grads(core::Team team, const AdapterGrads& call, AdapterScratch& scratch);

}  // namespace troupe::model
