// The KV cache of all layers, in blocks of 16 tokens: [layer][block][kv_head], then as in
// kernels/shapes.hpp. An engine owns one as its cache. Trainers and scorers need keys and values
// only within a layer, so all layers share the memory of one. The forward pass writes the pool
// inside parallel regions; call `copy_block` outside them.
#pragma once

#include "kernels/shapes.hpp"
#include "runtime/core/buffer.hpp"
#include "runtime/model/spec.hpp"

#include <cstdint>

namespace troupe::model {

class KvPool {
 public:
  KvPool() = default;
  // `layers`: the model's count, or 1 if every layer uses the same memory in turn. `memory`: that
  // of the team that computes with the pool. `dtype`: PackedWeights::kv_dtype of its weights.
  KvPool(const ModelSpec& spec,
         std::int64_t layers,
         std::int64_t blocks,
         core::Memory& memory = core::host_memory(),
         kernels::KvDtype dtype = kernels::KvDtype::kF32);

  kernels::KvNumbers k(std::int64_t layer) { return {k_.data() + begin_of(layer), dtype_}; }
  kernels::KvNumbers v(std::int64_t layer) { return {v_.data() + begin_of(layer), dtype_}; }
  kernels::KvDtype dtype() const { return dtype_; }
  core::Memory& memory() const { return k_.memory(); }
  std::int64_t layers() const { return layers_; }
  std::int64_t blocks() const { return blocks_; }
  std::int64_t block_size() const { return block_size_; }  // numbers of one block in k (and in v)
  // Makes room for at least `blocks` blocks of one layer that all layers use in turn. A pool that
  // is too small, in another memory or of another dtype is replaced by one for 1.25 x `blocks`, and
  // its contents are lost.
  void reserve_discard(const ModelSpec& spec,
                       std::int64_t blocks,
                       core::Memory& memory,
                       kernels::KvDtype dtype);
  // Copies block `from` to `to` in all layers.
  void copy_block(std::int64_t from, std::int64_t to);
  std::uint64_t bytes() const;

 private:
  // Where a layer begins, in bytes.
  std::int64_t begin_of(std::int64_t layer) const {
    return layers_ == 1 ? 0 : layer * blocks_ * block_bytes();
  }
  std::int64_t block_bytes() const { return block_size_ * kernels::bytes_of(dtype_); }

  std::int64_t blocks_ = 0, block_size_ = 0, layers_ = 0;
  kernels::KvDtype dtype_ = kernels::KvDtype::kF32;
  core::Buffer<unsigned char> k_;
  core::Buffer<unsigned char> v_;
};

}  // namespace troupe::model
