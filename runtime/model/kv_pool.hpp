// The KV cache of all layers, in blocks of 16 tokens: [layer][block][kv_head], then as in
// kernels/shapes.hpp. An engine owns one as its cache. Trainers and scorers need keys and values
// only within a layer, so all layers share the memory of one. The forward pass writes the pool
// inside parallel regions; call `copy_block` outside them.
#pragma once

#include "runtime/core/buffer.hpp"
#include "runtime/model/spec.hpp"

#include <cstdint>

namespace troupe::model {

class KvPool {
 public:
  KvPool() = default;
  // `layers`: the model's count, or 1 if every layer uses the same memory in turn. `memory`: that
  // of the team that computes with the pool.
  KvPool(const ModelSpec& spec,
         std::int64_t layers,
         std::int64_t blocks,
         core::Memory& memory = core::host_memory());

  float* k(std::int64_t layer) { return k_.data() + (layers_ == 1 ? 0 : layer * layer_size_); }
  float* v(std::int64_t layer) { return v_.data() + (layers_ == 1 ? 0 : layer * layer_size_); }
  core::Memory& memory() const { return k_.memory(); }
  std::int64_t layers() const { return layers_; }
  std::int64_t blocks() const { return blocks_; }
  std::int64_t block_size() const { return block_size_; }  // floats of one block in k (and in v)
  // Copies block `from` to `to` in all layers.
  void copy_block(std::int64_t from, std::int64_t to);
  std::uint64_t bytes() const;

 private:
  std::int64_t blocks_ = 0, block_size_ = 0, layer_size_ = 0, layers_ = 0;
  core::Buffer<float> k_;
  core::Buffer<float> v_;
};

}  // namespace troupe::model
