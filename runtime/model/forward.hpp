// The forward pass of all models. The engine calls it with scratch that every layer reuses; the
// trainer calls it with buffers that it keeps for the backward pass. The arithmetic, and so the
// bits, are the same (ADR 0003). Every member of the team calls each function with the same
// arguments. The functions contain their own barriers.
#pragma once

#include "kernels/ops.hpp"
#include "runtime/core/buffer.hpp"
#include "runtime/core/team.hpp"
#include "runtime/model/kv_pool.hpp"
#include "runtime/model/moe_buffers.hpp"
#include "runtime/model/packed.hpp"
#include "runtime/model/plan.hpp"

#include <cstdint>
#include <vector>

namespace troupe::model {

// The buffers for one layer's intermediate values. `rows` is plan.rows(). All are row-major f32.
struct LayerBuffers {
  const float* x = nullptr;  // [rows, hidden] input
  float* normed = nullptr;   // [rows, hidden] scratch
  // [members, rows, hidden] scratch or null. If set, every member normalises all rows itself before
  // a product. With few rows that is faster than sharing them out and meeting at a barrier.
  float* normed_alone = nullptr;
  float* qkv = nullptr;        // [rows, qkv_width], q and k rotated
  float* attention = nullptr;  // [rows, q_width] output of attention, before the product with W_o
  float* lse = nullptr;        // [rows, heads] log-sum-exp of the scores; null: no backward pass
  // Inputs of the extra norms of some families, kept for the backward pass; else null. qk_raw
  // [rows, q_width + kv_width]: q and k before their norms. attention_out and ffn_out [rows,
  // hidden]: the products before the norm that precedes the residual sum.
  float* qk_raw = nullptr;
  float* attention_out = nullptr;
  float* ffn_out = nullptr;
  float* inv_rms_qk = nullptr;             // [heads + kv_heads][rows]
  float* inv_rms_attention_out = nullptr;  // [rows]
  float* inv_rms_ffn_out = nullptr;        // [rows]
  float* x_mid = nullptr;                  // [rows, hidden] after attention and residual
  float* gate_up = nullptr;                // [rows, 2 ffn]
  float* act = nullptr;                    // [rows, ffn] scratch
  // [rows, hidden]; may share the memory of `x` when x is not kept. Null: compute only what a
  // backward pass reads.
  float* out = nullptr;
  MoeBuffers moe;             // of a layer of experts; gate_up and act are then the shared expert's
  float* inv_rms1 = nullptr;  // [rows] 1 / rms of x, for the backward pass; or null
  float* inv_rms2 = nullptr;  // [rows] the same of x_mid
};

// x[rows, hidden] = embeddings of plan.tokens.
void embed_rows(core::Team team, const PackedWeights& weights, const ForwardPlan& plan, float* x);

// The arguments of the attention kernel for one layer; the backward pass uses the same.
kernels::Attention attention_of(const ModelSpec& spec,
                                std::int64_t layer,
                                const ForwardPlan& plan,
                                const LayerBuffers& io,
                                const kernels::KvNumbers& k_pool,
                                const kernels::KvNumbers& v_pool);

// Runs one layer from io.x to io.out. `k_pool` and `v_pool` are the layer's part of a KvPool.
void layer_forward(core::Team team,
                   const PackedWeights& weights,
                   std::int64_t layer,
                   const ForwardPlan& plan,
                   const kernels::KvNumbers& k_pool,
                   const kernels::KvNumbers& v_pool,
                   const LayerBuffers& io);

// Scratch of `forward_hidden`; grows as needed.
struct ForwardScratch {
  core::Buffer<float> x, normed, normed_alone, qkv, attention, x_mid, gate_up, act, head_in;
  MoeScratch moe;
  // With `keep_routed`: the experts chosen for each logit row, [logit_rows][routed_width(spec)].
  bool keep_routed = false;
  core::Buffer<std::uint16_t> routed;
  // Allocates room in the team's memory for `rows` rows and `logit_rows` head rows. Call it outside
  // parallel regions. A team with more than `members` members needs more barriers when rows are
  // few.
  void reserve(core::Memory& memory,
               const ModelSpec& spec,
               std::int64_t rows,
               std::int64_t logit_rows,
               std::int64_t members = 1);
  // Views for every layer in turn, which writes its output over its input.
  LayerBuffers layer_buffers(core::Team team, const ModelSpec& spec, const ForwardPlan& plan);
};

// head_in[i] = final norm of row plan.logit_rows[i] of x. `rows` receives the rows before the norm
// and may be `head_in`; `inv_rms` [logit rows] may be null.
void normalise_logit_rows(core::Team team,
                          const PackedWeights& weights,
                          const ForwardPlan& plan,
                          const float* x,
                          float* rows,
                          float* head_in,
                          float* inv_rms = nullptr);

// Runs all layers and keeps no activations. Fills the KV pools and leaves the normed hidden states
// of plan.logit_rows in scratch.head_in [logit_rows, hidden].
void forward_hidden(core::Team team,
                    const PackedWeights& weights,
                    const ForwardPlan& plan,
                    KvPool& pool,
                    ForwardScratch& scratch);

// As above, one part (weights_gate.hpp) after another; the last is the final norm alone. Keeps
// no choices of experts.
void forward_part(core::Team team,
                  const PackedWeights& weights,
                  const ForwardPlan& plan,
                  KvPool& pool,
                  ForwardScratch& scratch,
                  std::int64_t part);

// logits[rows, vocab] (ld `ldl`, a multiple of 16 and >= vocab) = head_in[rows, hidden] * head. If
// `block_max` and `block_sum` [rows, vocab_blocks] are not null, they receive the partial maxima
// and sums of each row and vocabulary block at `inv_temperature[row]`.
void head_forward(core::Team team,
                  const PackedWeights& weights,
                  const float* head_in,
                  std::int64_t rows,
                  float* logits,
                  std::int64_t ldl,
                  const float* inv_temperature,
                  float* block_max,
                  float* block_sum);

// Applies the spec's final_softcap, if it has one, to `count` columns of logits in place.
void cap_logits(
    const ModelSpec& spec, float* logits, std::int64_t rows, std::int64_t ldl, std::int64_t count);
// The number of blocks of kernels::kVocabBlock columns in the vocabulary.
std::int64_t vocab_blocks(const ModelSpec& spec);
// Merges the partial sums of one row: M = max over blocks; S = fma chain over blocks ascending of
// sum_b * exp(max_b - M); returns M + log(S). Runs on the host.
float merge_vocab_stats(const float* block_max, const float* block_sum, std::int64_t blocks);
// The log-prob of a token from its logit and its row's `lse` (merge_vocab_stats): one rounding for
// the scaled logit, one for the difference.
inline float token_logprob(float logit, float inv_temperature, float lse) {
  const float scaled = logit * inv_temperature;
  return scaled - lse;
}

}  // namespace troupe::model
