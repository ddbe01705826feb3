// What the layers of a training pass keep for their backward pass, in an arena that is reused from
// micro-batch to micro-batch. Floats per row and trained layer: 2 hidden + qkv + q + heads + 2 ffn
// + 2; norms of branches add 2 hidden + 2, norms of heads q + k + heads + kv heads, experts k (2
// expert ffn + 2) + the router's columns. With checkpointing: hidden per row and layer, and the
// rest for one layer only. Layers below the first trained one share what they compute with. Owned
// by a TrainTape.
#pragma once

#include "runtime/core/buffer.hpp"
#include "runtime/model/forward.hpp"

#include <cstdint>
#include <vector>

namespace troupe::model {

class KeptLayers {
 public:
  // `first_trained`: layers below it have no backward pass.
  KeptLayers(std::int64_t first_trained, bool checkpointing)
      : first_trained_(first_trained), checkpointing_(checkpointing) {}

  // Makes room for a micro-batch of that many rows. `scratch` has what no layer keeps.
  void carve(const ModelSpec& spec,
             std::int64_t rows,
             ForwardScratch& scratch,
             core::Memory& memory);

  const LayerBuffers& layer(std::int64_t i) const { return layers_[static_cast<std::size_t>(i)]; }
  // The input of layer i [rows, hidden]; for i = layers, the output of the last.
  float* hidden(std::int64_t i) { return hidden_[static_cast<std::size_t>(i)]; }
  std::int64_t floats() const { return floats_; }  // of this micro-batch
  std::uint64_t bytes() const;                     // of the arena

 private:
  const std::int64_t first_trained_;
  const bool checkpointing_;
  std::int64_t floats_ = 0;
  core::Buffer<float> arena_;           // of all layers
  core::Buffer<std::int32_t> experts_;  // kept choices of all layers of experts
  std::vector<LayerBuffers> layers_;    // views into arena_, some shared
  std::vector<float*> hidden_;          // [layers + 1]; one buffer up to the first trained layer
};

}  // namespace troupe::model
