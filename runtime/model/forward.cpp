#include "runtime/model/forward.hpp"

#include "runtime/core/check.hpp"
#include "runtime/model/dense_rows.hpp"
#include "runtime/model/moe_forward.hpp"
#include "runtime/model/shares.hpp"

#include <algorithm>

namespace troupe::model {
namespace {

constexpr std::int64_t kRowsAlone_max = 8;  // up to so many rows, forward_hidden uses normed_alone

using core::Team;
using kernels::Gemm;
using kernels::ops;

struct LayerCall {
  Team team;
  const PackedWeights& weights;
  std::int64_t index;
  const PackedLayer& layer;
  bool sparse;  // a mixture-of-experts layer
  const ForwardPlan& plan;
  const PlanView lists;  // plan.view()
  const kernels::KvNumbers k_pool, v_pool;
  const LayerBuffers& io;

  const ModelSpec& spec() const { return weights.spec(); }
};

void normalise_to(const LayerCall& c,
                  Range rows,
                  const float* x,
                  const float* weight,
                  float* out,
                  float* inv_rms) {
  if (!rows.empty()) norm_rows(c.spec(), x, weight, out, inv_rms, rows);
}

void normalise(
    const LayerCall& c, Range rows, const float* x, const float* weight, float* inv_rms) {
  normalise_to(c, rows, x, weight, c.io.normed, inv_rms);
}

// Normalises x and returns the rows that the product with `next` [n, hidden] reads.
const float* normed_for(const LayerCall& c,
                        const Shares& shares,
                        const float* x,
                        const float* weight,
                        float* inv_rms,
                        const kernels::Panels& next,
                        std::int64_t n) {
  const std::int64_t rows = c.plan.rows();
  if (c.io.normed_alone != nullptr) {
    float* own = c.io.normed_alone + c.team.rank * rows * c.spec().hidden;
    normalise_to(c, {0, rows}, x, weight, own, nullptr);
    return own;
  }
  normalise(c, shares.rows(), x, weight, inv_rms);
  shares.meet(next, n, c.spec().hidden);
  return c.io.normed;
}

// Normalises the q and k heads in place. Keeps the raw values if a backward pass follows.
void normalise_heads(const LayerCall& c, Range rows) {
  const ModelSpec& spec = c.spec();
  const std::int64_t width = spec.qkv_width(), normed = spec.q_width() + spec.kv_width();
  if (c.io.qk_raw != nullptr) {
    ops().copy_rows(
        {.columns = normed, .from = c.io.qkv, .ldf = width, .to = c.io.qk_raw, .ldt = normed},
        rows);
  }
  const auto norm = [&](std::int64_t first, std::int64_t heads, const float* weight) {
    float* const x = c.io.qkv + first * spec.head_dim;
    float* const inv_rms =
        c.io.inv_rms_qk == nullptr ? nullptr : c.io.inv_rms_qk + first * c.plan.rows();
    ops().rmsnorm({.heads = heads,
                   .d = spec.head_dim,
                   .x = x,
                   .ldx = width,
                   .weight = weight,
                   .eps = spec.rms_eps,
                   .y = x,
                   .ldy = width,
                   .inv_rms = inv_rms,
                   .ldi = c.plan.rows()},
                  rows);
  };
  norm(0, spec.heads, c.layer.q_norm);
  norm(spec.heads, spec.kv_heads, c.layer.k_norm);
}

// Rotates q and k, and writes k and v to their KV slots.
void rotate_and_store(const LayerCall& c, Range rows) {
  if (rows.empty()) return;
  const ModelSpec& spec = c.spec();
  const std::int64_t width = spec.qkv_width();
  if (spec.qk_norm) normalise_heads(c, rows);
  // q and k heads are adjacent, so one call rotates both.
  ops().rope({.heads = spec.heads + spec.kv_heads,
              .head_dim = spec.head_dim,
              .rotary = spec.rotary(),
              .x = c.io.qkv,
              .ldx = width,
              .positions = c.lists.positions,
              .cos = c.layer.rope_cos,
              .sin = c.layer.rope_sin},
             rows);
  const kernels::KvWrite write{spec.kv_heads,
                               spec.head_dim,
                               c.io.qkv + spec.q_width(),
                               width,
                               c.io.qkv + spec.q_width() + spec.kv_width(),
                               width,
                               c.k_pool,
                               c.v_pool,
                               c.lists.slot_begin,
                               c.lists.slots};
  ops().kv_write(write, rows);
}

void attend(const LayerCall& c) {
  const kernels::Attention attention =
      attention_of(c.spec(), c.index, c.plan, c.io, c.k_pool, c.v_pool);
  const auto rank = static_cast<std::size_t>(c.team.rank);
  const std::int32_t begin = c.plan.item_begin[rank], end = c.plan.item_begin[rank + 1];
  if (begin < end) ops().attention(attention, c.lists.items + begin, end - begin);
}

// What attention or the feed-forward part adds to the residual stream: a product, which some
// families normalise first.
struct Branch {
  kernels::Gemm product;        // `c` and `residual` are not set
  const float* norm = nullptr;  // [hidden] or null
  float* kept = nullptr;        // receives the product before the norm; may be null
  float* inv_rms = nullptr;
  const float* residual = nullptr;
  float* out = nullptr;  // null: compute only what a backward pass reads
};

void add_branch(const LayerCall& c, const Shares& shares, const Branch& branch) {
  const std::int64_t hidden = c.spec().hidden;
  Gemm product = branch.product;
  product.ldc = hidden;
  if (branch.norm == nullptr) {
    product.c = branch.out;
    product.residual = branch.residual;
    product.ldr = hidden;
    shares.gemm(product);
    return;
  }
  product.c = branch.kept != nullptr ? branch.kept : c.io.normed;
  shares.gemm(product);
  shares.meet();
  const Range own = shares.rows();
  normalise(c, own, product.c, branch.norm, branch.inv_rms);
  if (branch.out == nullptr || own.empty()) return;
  ops().add_rows({.columns = hidden,
                  .a = branch.residual,
                  .lda = hidden,
                  .b = c.io.normed,
                  .ldb = hidden,
                  .out = branch.out,
                  .ldo = hidden},
                 own);
}

void attention_block(const LayerCall& c, const Shares& shares) {
  const ModelSpec& spec = c.spec();
  const std::int64_t rows = c.plan.rows(), hidden = spec.hidden;
  const float* normed = normed_for(c, shares, c.io.x, c.layer.input_norm, c.io.inv_rms1,
                                   c.layer.qkv, spec.qkv_width());
  shares.gemm({.m = rows,
               .n = spec.qkv_width(),
               .k = hidden,
               .a = normed,
               .lda = hidden,
               .b = c.layer.qkv,
               .c = c.io.qkv,
               .ldc = spec.qkv_width(),
               .bias = c.layer.qkv_bias});
  shares.meet();
  rotate_and_store(c, shares.rows());
  c.team.barrier();
  attend(c);
  c.team.barrier(shares.upcoming(c.layer.o, hidden, spec.q_width()));
  add_branch(c, shares,
             {.product = {.m = rows,
                          .n = hidden,
                          .k = spec.q_width(),
                          .a = c.io.attention,
                          .lda = spec.q_width(),
                          .b = c.layer.o,
                          .bias = c.layer.o_bias},
              .norm = c.layer.attention_out_norm,
              .kept = c.io.attention_out,
              .inv_rms = c.io.inv_rms_attention_out,
              .residual = c.io.x,
              .out = c.io.x_mid});
  shares.meet();
}

void feed_forward_block(const LayerCall& c, const Shares& shares) {
  const ModelSpec& spec = c.spec();
  const std::int64_t rows = c.plan.rows(), hidden = spec.hidden, ffn = spec.ffn;
  if (c.sparse) {
    normalise(c, shares.rows(), c.io.x_mid, c.layer.ffn_norm, c.io.inv_rms2);
    shares.meet();
    sparse_feed_forward(shares, spec, c.layer.moe, c.io, rows);
    return;
  }
  const float* normed =
      normed_for(c, shares, c.io.x_mid, c.layer.ffn_norm, c.io.inv_rms2, c.layer.gate_up, 2 * ffn);
  shares.gemm({.m = rows,
               .n = 2 * ffn,
               .k = hidden,
               .a = normed,
               .lda = hidden,
               .b = c.layer.gate_up,
               .c = c.io.gate_up,
               .ldc = 2 * ffn,
               .bias = c.layer.gate_up_bias});
  if (c.io.out == nullptr && c.io.ffn_out == nullptr) return;
  shares.meet();
  if (const Range own = shares.rows(); !own.empty())
    gate_rows(spec.activation, c.io.gate_up, ffn, c.io.act, own);
  shares.meet(c.layer.down, hidden, ffn);
  add_branch(c, shares,
             {.product = {.m = rows,
                          .n = hidden,
                          .k = ffn,
                          .a = c.io.act,
                          .lda = ffn,
                          .b = c.layer.down,
                          .bias = c.layer.down_bias},
              .norm = c.layer.ffn_out_norm,
              .kept = c.io.ffn_out,
              .inv_rms = c.io.inv_rms_ffn_out,
              .residual = c.io.x_mid,
              .out = c.io.out});
}

}  // namespace

kernels::Attention attention_of(const ModelSpec& spec,
                                std::int64_t layer,
                                const ForwardPlan& plan,
                                const LayerBuffers& io,
                                const kernels::KvNumbers& k_pool,
                                const kernels::KvNumbers& v_pool) {
  kernels::Attention a;
  a.heads = spec.heads;
  a.kv_heads = spec.kv_heads;
  a.head_dim = spec.head_dim;
  a.scale = spec.attention_scale();
  a.window = spec.window_of(layer);
  a.softcap = spec.attention_softcap;
  a.q = io.qkv;
  a.ldq = spec.qkv_width();
  a.k_pool = k_pool;
  a.v_pool = v_pool;
  const PlanView lists = plan.view();
  a.segments = lists.segments;
  a.block_table = lists.block_table;
  a.out = io.attention;
  a.ldo = spec.q_width();
  a.lse = io.lse;
  a.one_row_items = plan.one_row_items;
  a.longer_items = plan.longer_items;
  return a;
}

void embed_rows(Team team, const PackedWeights& weights, const ForwardPlan& plan, float* x) {
  const auto [begin, end] = team.share(plan.rows());
  if (begin < end) weights.embed(plan.view().tokens, begin, end, x);
  team.barrier();
}

void layer_forward(Team team,
                   const PackedWeights& weights,
                   std::int64_t layer,
                   const ForwardPlan& plan,
                   const kernels::KvNumbers& k_pool,
                   const kernels::KvNumbers& v_pool,
                   const LayerBuffers& io) {
  TROUPE_DCHECK(static_cast<int>(plan.item_begin.size()) == team.size + 1,
                "the plan was finished for another team size");
  const LayerCall call{team,
                       weights,
                       layer,
                       weights.layer(layer),
                       weights.spec().moe.sparse(layer),
                       plan,
                       plan.view(),
                       k_pool,
                       v_pool,
                       io};
  const Shares shares(team, plan.rows());
  attention_block(call, shares);
  feed_forward_block(call, shares);
  team.barrier();
}

void ForwardScratch::reserve(core::Memory& memory,
                             const ModelSpec& spec,
                             std::int64_t rows,
                             std::int64_t logit_rows,
                             std::int64_t members) {
  x.reserve_discard(rows * spec.hidden, memory);
  normed.reserve_discard(rows * spec.hidden, memory);
  normed_alone.reserve_discard(std::min(rows, kRowsAlone_max) * members * spec.hidden, memory);
  qkv.reserve_discard(rows * spec.qkv_width(), memory);
  attention.reserve_discard(rows * spec.q_width(), memory);
  x_mid.reserve_discard(rows * spec.hidden, memory);
  gate_up.reserve_discard(rows * 2 * spec.dense_ffn(), memory);
  act.reserve_discard(rows * spec.dense_ffn(), memory);
  moe.reserve(spec, rows);
  if (keep_routed) routed.reserve_discard(logit_rows * routed_width(spec));
  head_in.reserve_discard(logit_rows * spec.hidden, memory);
}

void normalise_logit_rows(Team team,
                          const PackedWeights& weights,
                          const ForwardPlan& plan,
                          const float* x,
                          float* rows,
                          float* head_in,
                          float* inv_rms) {
  const std::int64_t hidden = weights.spec().hidden;
  const Range own = team.share(static_cast<std::int64_t>(plan.logit_rows.size()));
  if (!own.empty()) {
    ops().copy_rows({.columns = hidden,
                     .from = x,
                     .ldf = hidden,
                     .from_row = plan.view().logit_rows,
                     .to = rows,
                     .ldt = hidden},
                    own);
    norm_rows(weights.spec(), rows, weights.final_norm(), head_in, inv_rms, own);
  }
  team.barrier();
}

LayerBuffers ForwardScratch::layer_buffers(Team team,
                                           const ModelSpec& spec,
                                           const ForwardPlan& plan) {
  LayerBuffers io;
  io.x = io.out = x.data();
  io.normed = normed.data();
  const std::int64_t alone = team.size * plan.rows() * spec.hidden;
  if (plan.rows() <= kRowsAlone_max && alone <= normed_alone.size())
    io.normed_alone = normed_alone.data();
  io.qkv = qkv.data();
  io.attention = attention.data();
  io.x_mid = x_mid.data();
  io.gate_up = gate_up.data();
  io.act = act.data();
  io.moe = moe.views(spec.moe);
  return io;
}

void forward_hidden(Team team,
                    const PackedWeights& weights,
                    const ForwardPlan& plan,
                    KvPool& pool,
                    ForwardScratch& scratch) {
  kernels::flush_denormals();
  embed_rows(team, weights, plan, scratch.x.data());
  const ModelSpec& spec = weights.spec();
  const LayerBuffers io = scratch.layer_buffers(team, spec, plan);
  std::int64_t sparse = 0;
  for (std::int64_t layer = 0; layer < spec.layers; ++layer) {
    layer_forward(team, weights, layer, plan, pool.k(layer), pool.v(layer), io);
    if (!scratch.keep_routed || !spec.moe.sparse(layer)) continue;
    // The next mixture-of-experts layer overwrites the choices, but only after a barrier.
    copy_choices(team, spec, io.moe.routing, plan.logit_rows, sparse++, scratch.routed.data());
  }
  float* const head_in = scratch.head_in.data();
  normalise_logit_rows(team, weights, plan, scratch.x.data(), head_in, head_in);
}

void forward_part(Team team,
                  const PackedWeights& weights,
                  const ForwardPlan& plan,
                  KvPool& pool,
                  ForwardScratch& scratch,
                  std::int64_t part) {
  kernels::flush_denormals();
  const ModelSpec& spec = weights.spec();
  const std::int64_t layer = part - 1;
  if (part == 0) {
    embed_rows(team, weights, plan, scratch.x.data());
  } else if (layer < spec.layers) {
    layer_forward(team, weights, layer, plan, pool.k(layer), pool.v(layer),
                  scratch.layer_buffers(team, spec, plan));
  } else {
    float* const head_in = scratch.head_in.data();
    normalise_logit_rows(team, weights, plan, scratch.x.data(), head_in, head_in);
  }
}

}  // namespace troupe::model
