// The gradients of adapters in a layer's backward pass. For y = x W^T with W = W0 + s B A:
//   dB [rows, rank]    += dY^T (s x A^T)
//   dA [rank, columns] += (s dY B)^T x
// so no product of the size of dW is computed. Called by every member of the team for the linear
// maps that read the same x; outputs are split, never a sum, so the bits do not depend on the team.
// Nothing is allocated inside.
#pragma once

#include "runtime/core/buffer.hpp"
#include "runtime/core/team.hpp"
#include "runtime/model/lora.hpp"
#include "runtime/model/products.hpp"

#include <cstdint>
#include <span>

namespace troupe::model {

// [rows, ranks of the maps side by side] of s x A^T, of s dY B, and the first packed.
struct AdapterScratch {
  core::Buffer<float> low_x, low_dy, packed;
  // Not inside a region. `lora` null: no room is needed.
  void reserve(const Lora* lora, std::int64_t layers, std::int64_t rows);
};

struct AdapterGrads {
  const Lora& lora;
  std::int64_t layer = 0;
  std::span<const Linear> maps;  // their outputs lie side by side in dy
  Matrix dy;
  Matrix x;
  const float* packed_x = nullptr;  // by pack_input
  ParamStore& grads;
};

// True when one of the maps has an adapter in this layer.
bool has_adapter(const Lora* lora, std::int64_t layer, std::span<const Linear> maps);

// Three phases with a barrier after each; the caller puts one before (x, packed_x and dy are
// whole).
void adapter_grads(core::Team team, const AdapterGrads& call, AdapterScratch& scratch);

}  // namespace troupe::model
