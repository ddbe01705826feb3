// The one forward pass. The engine calls it on scratch that every layer reuses, the trainer on buffers
// that it keeps for the backward pass; the arithmetic, and so the bits, are the same (ADR 0003).
// Every member of the team calls each function with the same arguments; barriers are inside.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/ops.hpp"
#include "runtime/core/buffer.hpp"
#include "runtime/core/team.hpp"
#include "runtime/model/packed.hpp"
#include "runtime/model/plan.hpp"

namespace troupe::model {

// KV pools of all layers: [layer][block][kv_head]... (kernels/shapes.hpp), blocks of 16 tokens.
class KvPool {
 public:
  KvPool() = default;
  KvPool(const ModelSpec& spec, std::int64_t layers, std::int64_t blocks);
  float* k(std::int64_t layer) { return k_.data() + layer * layer_size_; }
  float* v(std::int64_t layer) { return v_.data() + layer * layer_size_; }
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

// Where one layer puts its intermediate values; rows of plan.rows(). All row-major f32.
struct LayerBuffers {
  const float* x = nullptr;   // [rows, hidden] input
  float* normed = nullptr;    // [rows, hidden] scratch (used twice)
  float* qkv = nullptr;       // [rows, qkv_width], q and k rotated
  float* attention = nullptr;  // [rows, q_width]
  float* lse = nullptr;       // [rows, heads], or null when no backward pass follows
  float* x_mid = nullptr;     // [rows, hidden] after attention and residual
  float* gate_up = nullptr;   // [rows, 2 ffn]
  float* act = nullptr;       // [rows, ffn] scratch
  float* out = nullptr;       // [rows, hidden]; may be `x`'s memory when x is not kept
  float* inv_rms1 = nullptr;  // [rows] or null
  float* inv_rms2 = nullptr;  // [rows] or null
};

// x[rows, hidden] = embeddings of plan.tokens.
void embed_rows(core::Team team, const PackedWeights& weights, const ForwardPlan& plan, float* x);

void layer_forward(core::Team team, const PackedWeights& weights, std::int64_t layer,
                   const ForwardPlan& plan, float* k_pool, float* v_pool, const LayerBuffers& io);

// Scratch of `forward_hidden`, grown as needed.
struct ForwardScratch {
  core::Buffer<float> x, normed, qkv, attention, x_mid, gate_up, act, head_in;
  // Not inside a parallel region: makes room for `rows` rows and `logit_rows` head rows.
  void reserve(const ModelSpec& spec, std::int64_t rows, std::int64_t logit_rows);
};

// All layers without keeping anything: fills the pools, leaves the normed hidden states of
// plan.logit_rows in scratch.head_in [logit_rows, hidden].
void forward_hidden(core::Team team, const PackedWeights& weights, const ForwardPlan& plan,
                    KvPool& pool, ForwardScratch& scratch);

// logits[rows, vocab] (ld `ldl`, a multiple of 16 and >= vocab) = head_in[rows, hidden] * head.
// Also per row and vocabulary block the partial maxima and sums at `inv_temperature[row]`, when
// `block_max`/`block_sum` [rows, vocab_blocks] are not null.
void head_forward(core::Team team, const PackedWeights& weights, const float* head_in,
                  std::int64_t rows, float* logits, std::int64_t ldl, const float* inv_temperature,
                  float* block_max, float* block_sum);

std::int64_t vocab_blocks(const ModelSpec& spec);
// Merges the partial sums of one row: M = max over blocks; S = fma chain over blocks ascending of
// sum_b * exp(max_b - M); returns M + log(S).
float merge_vocab_stats(const float* block_max, const float* block_sum, std::int64_t blocks);

}  // namespace troupe::model
