// The forward pass of all models. The engine calls it on scratch that every layer reuses, the
// trainer on buffers that it keeps for the backward pass; the arithmetic, and so the bits, are the
// same (ADR 0003). Every member of the team calls each function with the same arguments; barriers
// are inside.
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

// Where one layer puts its intermediate values; rows of plan.rows(). All row-major f32.
struct LayerBuffers {
  const float* x = nullptr;  // [rows, hidden] input
  float* normed = nullptr;   // [rows, hidden] scratch
  // [members, rows, hidden] scratch or null. Where it is, every member norms all rows for itself
  // before a product, which with few rows takes less time than meeting does.
  float* normed_alone = nullptr;
  float* qkv = nullptr;        // [rows, qkv_width], q and k rotated
  float* attention = nullptr;  // [rows, q_width]
  float* lse = nullptr;        // [rows, heads], or null when no backward pass follows
  // Of families with such norms, what a backward pass reads; else null. q and k heads before theirs
  // [rows, q_width + kv_width]; the products before those that go before the residual [rows,
  // hidden].
  float* qk_raw = nullptr;
  float* attention_out = nullptr;
  float* ffn_out = nullptr;
  float* inv_rms_qk = nullptr;             // [heads + kv_heads][rows]
  float* inv_rms_attention_out = nullptr;  // [rows]
  float* inv_rms_ffn_out = nullptr;        // [rows]
  float* x_mid = nullptr;                  // [rows, hidden] after attention and residual
  float* gate_up = nullptr;                // [rows, 2 ffn]
  float* act = nullptr;                    // [rows, ffn] scratch
  // [rows, hidden]; may be `x`'s memory when x is not kept; null: only what a backward pass reads
  // is wanted.
  float* out = nullptr;
  MoeBuffers moe;             // of a layer of experts; gate_up and act are then the shared expert's
  float* inv_rms1 = nullptr;  // [rows] or null
  float* inv_rms2 = nullptr;  // [rows] or null
};

// x[rows, hidden] = embeddings of plan.tokens.
void embed_rows(core::Team team, const PackedWeights& weights, const ForwardPlan& plan, float* x);

// The attention of one layer as the kernels take it; the backward pass uses the same.
kernels::Attention attention_of(const ModelSpec& spec,
                                std::int64_t layer,
                                const ForwardPlan& plan,
                                const LayerBuffers& io,
                                const float* k_pool,
                                const float* v_pool);

void layer_forward(core::Team team,
                   const PackedWeights& weights,
                   std::int64_t layer,
                   const ForwardPlan& plan,
                   float* k_pool,
                   float* v_pool,
                   const LayerBuffers& io);

// Scratch of `forward_hidden`, grown as needed.
struct ForwardScratch {
  core::Buffer<float> x, normed, normed_alone, qkv, attention, x_mid, gate_up, act, head_in;
  MoeScratch moe;
  // When wanted: the experts that each logit row chose, [logit_rows][layers of experts][k].
  bool keep_routed = false;
  core::Buffer<std::uint16_t> routed;
  // Not inside a parallel region: makes room in the team's memory for `rows` rows and `logit_rows`
  // head rows. A team of more than `members` meets more often when the rows are few.
  void reserve(core::Memory& memory,
               const ModelSpec& spec,
               std::int64_t rows,
               std::int64_t logit_rows,
               std::int64_t members = 1);
};

// head_in[i] = final norm of row plan.logit_rows[i] of x. The rows before the norm go to `rows`,
// which may be `head_in`; `inv_rms` [logit rows] may be null.
void normalise_logit_rows(core::Team team,
                          const PackedWeights& weights,
                          const ForwardPlan& plan,
                          const float* x,
                          float* rows,
                          float* head_in,
                          float* inv_rms = nullptr);

// All layers without keeping anything: fills the pools, leaves the normed hidden states of
// plan.logit_rows in scratch.head_in [logit_rows, hidden].
void forward_hidden(core::Team team,
                    const PackedWeights& weights,
                    const ForwardPlan& plan,
                    KvPool& pool,
                    ForwardScratch& scratch);

// logits[rows, vocab] (ld `ldl`, a multiple of 16 and >= vocab) = head_in[rows, hidden] * head.
// Also per row and vocabulary block the partial maxima and sums at `inv_temperature[row]`, when
// `block_max`/`block_sum` [rows, vocab_blocks] are not null.
void head_forward(core::Team team,
                  const PackedWeights& weights,
                  const float* head_in,
                  std::int64_t rows,
                  float* logits,
                  std::int64_t ldl,
                  const float* inv_temperature,
                  float* block_max,
                  float* block_sum);

// The soft cap of `count` columns of fresh logits, in place; nothing in families without one.
void cap_logits(
    const ModelSpec& spec, float* logits, std::int64_t rows, std::int64_t ldl, std::int64_t count);
std::int64_t vocab_blocks(const ModelSpec& spec);
// Merges the partial sums of one row: M = max over blocks; S = fma chain over blocks ascending of
// sum_b * exp(max_b - M); returns M + log(S). All on the host.
float merge_vocab_stats(const float* block_max, const float* block_sum, std::int64_t blocks);
// The log-probability of a token from its logit: one rounding of the scaled logit, one of the
// difference. The engine and the trainer both take it from here.
inline float token_logprob(float logit, float inv_temperature, float lse) {
  const float scaled = logit * inv_temperature;
  return scaled - lse;
}

}  // namespace troupe::model
