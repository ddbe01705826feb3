#include "runtime/model/layer_grad.hpp"

#include "kernels/ops.hpp"
#include "runtime/model/dense_rows.hpp"

#include <algorithm>
#include <iterator>

namespace troupe::model {
namespace {

using core::Team;
using kernels::KvNumbers;
using kernels::ops;

// Groups of linear maps that read the same rows.
constexpr Linear kQkv[] = {Linear::kQ, Linear::kK, Linear::kV};
constexpr Linear kO[] = {Linear::kO};
constexpr Linear kGateUp[] = {Linear::kGate, Linear::kUp};
constexpr Linear kDown[] = {Linear::kDown};

class LayerPass {
 public:
  LayerPass(Team team, const LayerBackward& call)
      : team_(team),
        call_(call),
        spec_(call.weights.spec()),
        at_(call.master.layout().layers[static_cast<std::size_t>(call.layer)]),
        to_(call.grads.layout().layers[static_cast<std::size_t>(call.layer)]),
        packed_(call.weights.layer(call.layer)),
        s_(call.scratch),
        products_(call.scratch.products[static_cast<std::size_t>(team.rank)]),
        sparse_(spec_.moe.sparse(call.layer)),
        lists_(call.plan.view()),
        rows_(call.plan.rows()),
        own_(team.share(call.plan.rows())) {}

  void run() {
    branch_norm(call_.io.ffn_out, packed_.ffn_out_norm, call_.io.inv_rms_ffn_out, to_.ffn_out_norm);
    recompute();
    team_.barrier();
    if (sparse_) {
      experts();
    } else {
      activation();
      team_.barrier();
      feed_forward_products();
    }
    team_.barrier();
    norm_backward(call_.io.x_mid, packed_.ffn_norm, call_.io.inv_rms2, to_.ffn_norm);
    if (wants(kO)) {
      pack_input(team_, kept(call_.io.attention, spec_.q_width()), s_.packed_wide.data());
    }
    if (wants(kQkv)) normalise(call_.io.x, packed_.input_norm);
    team_.barrier();
    branch_norm(call_.io.attention_out, packed_.attention_out_norm, call_.io.inv_rms_attention_out,
                to_.attention_out_norm);
    output_products();
    team_.barrier();
    attention();
    team_.barrier();
    gather();
    team_.barrier();
    qkv_products();
    team_.barrier();
    norm_backward(call_.io.x, packed_.input_norm, call_.io.inv_rms1, to_.input_norm);
    team_.barrier();
  }

 private:
  Matrix kept(const float* data, std::int64_t columns) const {
    return {data, rows_, columns, columns};
  }
  Matrix weight(std::int64_t offset, std::int64_t rows, std::int64_t columns) const {
    return {call_.master.data() + offset, rows, columns, columns};
  }
  float* grad(std::int64_t offset) const { return call_.grads.data() + offset; }
  bool idle() const { return own_.empty(); }

  // Whether any of the maps is trained or has an adapter.
  bool wants(std::span<const Linear> maps) const {
    const auto trained = [&](Linear linear) { return to_.of(linear) >= 0; };
    return std::any_of(maps.begin(), maps.end(), trained) ||
           has_adapter(call_.lora, call_.layer, maps);
  }

  // The gradient of a branch's output to the residual stream, taken before the branch's norm.
  Matrix dbranch() const {
    return kept(spec_.post_norms ? s_.dbranch.data() : call_.dx, spec_.hidden);
  }

  // Goes back through a branch's norm, if it has one: computes dbranch from dx and keeps dx.
  void branch_norm(const float* x,
                   const float* weight_data,
                   const float* inv_rms,
                   std::int64_t weight_offset) {
    if (weight_data == nullptr) return;
    float* out = s_.dbranch.data();
    if (!idle()) {
      ops().zero(out, own_.times(spec_.hidden));
      norm_rows_backward(spec_.hidden, x, weight_data, inv_rms, call_.dx, out, own_);
    }
    norm_weight_grad(x, inv_rms, call_.dx, weight_offset);
    team_.barrier();
  }

  void norm_weight_grad(const float* x,
                        const float* inv_rms,
                        const float* dy,
                        std::int64_t weight_offset) {
    const core::Range columns = team_.share(spec_.hidden, kernels::kPanel);
    if (columns.empty() || weight_offset < 0) return;
    ops().rmsnorm_weight_grad({.rows = rows_,
                               .x = x,
                               .ldx = spec_.hidden,
                               .inv_rms = inv_rms,
                               .dy = dy,
                               .ldy = spec_.hidden,
                               .dweight = grad(weight_offset)},
                              columns);
  }

  void normalise(const float* x, const float* weight_data) {
    if (!idle()) norm_rows(spec_, x, weight_data, s_.normed.data(), nullptr, own_);
  }

  // A view of rows of q and k heads, or of q, k and v.
  struct HeadRows {
    float* data;
    std::int64_t ld;
  };
  kernels::KvWrite kv(HeadRows qk, float* qkv, KvNumbers k_pool, KvNumbers v_pool) const {
    return {spec_.kv_heads,
            spec_.head_dim,
            qk.data + spec_.q_width(),
            qk.ld,
            qkv + spec_.q_width() + spec_.kv_width(),
            spec_.qkv_width(),
            k_pool,
            v_pool,
            lists_.slot_begin,
            lists_.slots};
  }

  // Recomputes act and the feed-forward's normed rows, refills the KV pools, and computes dact.
  void recompute() {
    if (!idle()) {
      if (wants(kDown))
        gate_rows(spec_.activation, call_.io.gate_up, spec_.ffn, s_.act.data(), own_);
      float* const qkv = call_.io.qkv;
      ops().kv_write(kv({qkv, spec_.qkv_width()}, qkv, s_.pool.k(0), s_.pool.v(0)), own_);
    }
    if (sparse_ || wants(kGateUp)) normalise(call_.io.x_mid, packed_.ffn_norm);
    const core::Range numbers = team_.share(call_.kv_blocks).times(s_.pool.block_size());
    ops().zero(s_.dk_pool.data(), numbers);
    ops().zero(s_.dv_pool.data(), numbers);
    if (sparse_) return;
    input_grad(team_, dbranch(), weight(at_.down, spec_.hidden, spec_.ffn), s_.dact.data(),
               spec_.ffn, products_);
  }

  void activation() {
    if (wants(kDown)) pack_input(team_, kept(s_.act.data(), spec_.ffn), s_.packed_wide.data());
    if (wants(kGateUp)) {
      pack_input(team_, kept(s_.normed.data(), spec_.hidden), s_.packed_hidden.data());
    }
    if (!idle())
      gate_rows_backward(spec_.activation, call_.io.gate_up, spec_.ffn, s_.dact.data(), own_);
  }

  // The whole feed-forward part of a mixture-of-experts layer; contains barriers.
  void experts() {
    const SparseBackward call{.spec = spec_,
                              .master = call_.master.data(),
                              .at = at_.moe,
                              .grads = call_.grads.data(),
                              .to = to_.moe,
                              .io = call_.io,
                              .rows = rows_,
                              .normed = s_.normed.data(),
                              .dy = call_.dx,
                              .dnormed = s_.dnormed.data(),
                              .balance = call_.balance,
                              .act = s_.act.data(),
                              .dact = s_.dact.data(),
                              .packed_normed = s_.packed_hidden.data(),
                              .packed_act = s_.packed_wide.data(),
                              .scratch = s_.moe,
                              .products = products_};
    sparse_backward(team_, call);
  }

  void feed_forward_products() {
    const Matrix dgate_up = kept(call_.io.gate_up, 2 * spec_.ffn);
    weight_grads(kDown, dbranch(), kept(s_.act.data(), spec_.ffn), s_.packed_wide.data());
    weight_grads(kGateUp, dgate_up, kept(s_.normed.data(), spec_.hidden), s_.packed_hidden.data());
    input_grad(team_, dgate_up, weight(at_.gate, 2 * spec_.ffn, spec_.hidden), s_.dnormed.data(),
               spec_.hidden, products_);
    bias_grad(to_.down_bias, dbranch(), 0, spec_.hidden);
    bias_grad(to_.gate_bias, dgate_up, 0, spec_.ffn);
    bias_grad(to_.up_bias, dgate_up, spec_.ffn, spec_.ffn);
  }

  void norm_backward(const float* x,
                     const float* weight_data,
                     const float* inv_rms,
                     std::int64_t weight_offset) {
    if (!idle()) {
      norm_rows_backward(spec_.hidden, x, weight_data, inv_rms, s_.dnormed.data(), call_.dx, own_);
    }
    norm_weight_grad(x, inv_rms, s_.dnormed.data(), weight_offset);
  }

  void output_products() {
    const Matrix dy = dbranch();
    weight_grads(kO, dy, kept(call_.io.attention, spec_.q_width()), s_.packed_wide.data());
    input_grad(team_, dy, weight(at_.o, spec_.hidden, spec_.q_width()), s_.dattention.data(),
               spec_.q_width(), products_);
    bias_grad(to_.o_bias, dy, 0, spec_.hidden);
    if (wants(kQkv)) {
      pack_input(team_, kept(s_.normed.data(), spec_.hidden), s_.packed_hidden.data());
    }
  }

  void attention() {
    kernels::AttentionBackward backward;
    backward.forward =
        attention_of(spec_, call_.layer, call_.plan, call_.io, s_.pool.k(0), s_.pool.v(0));
    backward.dout = s_.dattention.data();
    backward.lddo = spec_.q_width();
    backward.dq = dqk().data;
    backward.lddq = dqk().ld;
    backward.dk_pool = s_.dk_pool.data();
    backward.dv_pool = s_.dv_pool.data();
    const std::span<const kernels::AttentionUnit> units = call_.units.of(team_.rank);
    if (!units.empty()) ops().attention_backward(backward, units.data(), std::ssize(units));
  }

  // Where the gradients of the rotated q and k go: a separate buffer if they have norms, else dqkv.
  HeadRows dqk() {
    if (spec_.qk_norm) return {s_.dqk.data(), spec_.q_width() + spec_.kv_width()};
    return {s_.dqkv.data(), spec_.qkv_width()};
  }

  // Gathers the pools' gradients into rows; goes back through rotation and norms of q and k.
  void gather() {
    if (idle()) return;
    const HeadRows after = dqk();
    const std::int64_t width = spec_.qkv_width();
    if (spec_.qk_norm) ops().zero(s_.dqkv.data(), own_.times(width));
    ops().kv_gather(kv(after, s_.dqkv.data(), s_.dk_pool.data(), s_.dv_pool.data()), own_);
    ops().rope({.heads = spec_.heads + spec_.kv_heads,
                .head_dim = spec_.head_dim,
                .rotary = spec_.rotary(),
                .x = after.data,
                .ldx = after.ld,
                .positions = lists_.positions,
                .cos = packed_.rope_cos,
                .sin = packed_.rope_sin,
                .inverse = true},
               own_);
    if (spec_.qk_norm) heads_backward();
  }

  // Adds the gradients of q and k before their norms to this member's rows of dqkv, zero so far.
  void heads_backward() {
    const std::int64_t width = spec_.qkv_width(), normed = spec_.q_width() + spec_.kv_width();
    for (std::int64_t head = 0; head < spec_.heads + spec_.kv_heads; ++head) {
      const std::int64_t at = head * spec_.head_dim;
      ops().rmsnorm_backward({.d = spec_.head_dim,
                              .x = call_.io.qk_raw + at,
                              .ldx = normed,
                              .weight = head < spec_.heads ? packed_.q_norm : packed_.k_norm,
                              .inv_rms = call_.io.inv_rms_qk + head * rows_,
                              .dy = s_.dqk.data() + at,
                              .ldy = normed,
                              .dx = s_.dqkv.data() + at,
                              .lddx = width},
                             own_);
    }
  }

  // Adds up the gradient of a norm's weight head by head, within a head by ascending rows.
  void head_norm_grads(std::int64_t offset, std::int64_t begin, std::int64_t end) {
    const std::int64_t normed = spec_.q_width() + spec_.kv_width();
    const core::Range columns = team_.share(spec_.head_dim, kernels::kPanel);
    if (offset < 0 || columns.empty()) return;
    for (std::int64_t head = begin; head < end; ++head) {
      const std::int64_t at = head * spec_.head_dim;
      ops().rmsnorm_weight_grad({.rows = rows_,
                                 .x = call_.io.qk_raw + at,
                                 .ldx = normed,
                                 .inv_rms = call_.io.inv_rms_qk + head * rows_,
                                 .dy = s_.dqk.data() + at,
                                 .ldy = normed,
                                 .dweight = grad(offset)},
                                columns);
    }
  }

  void qkv_products() {
    const Matrix dqkv = kept(s_.dqkv.data(), spec_.qkv_width());
    weight_grads(kQkv, dqkv, kept(s_.normed.data(), spec_.hidden), s_.packed_hidden.data());
    input_grad(team_, dqkv, weight(at_.q, spec_.qkv_width(), spec_.hidden), s_.dnormed.data(),
               spec_.hidden, products_);
    const std::int64_t k = spec_.q_width(), v = k + spec_.kv_width();
    bias_grad(to_.q_bias, dqkv, 0, k);
    bias_grad(to_.k_bias, dqkv, k, spec_.kv_width());
    bias_grad(to_.v_bias, dqkv, v, spec_.kv_width());
    head_norm_grads(to_.q_norm, 0, spec_.heads);
    head_norm_grads(to_.k_norm, spec_.heads, spec_.heads + spec_.kv_heads);
  }

  // Sums the columns [column, column + width) of dy.
  void bias_grad(std::int64_t offset, Matrix dy, std::int64_t column, std::int64_t width) {
    if (offset < 0) return;
    const core::Range columns = team_.share(width, kernels::kPanel);
    if (columns.empty()) return;
    ops().column_sum({.rows = rows_, .dy = dy.data + column, .ldy = dy.ld, .sums = grad(offset)},
                     columns);
  }

  // Weight gradients of maps that read the same x and whose outputs are adjacent in dy: one product
  // for adjacent trained maps, none for frozen ones, and the low-rank products of adapters.
  void weight_grads(std::span<const Linear> maps, Matrix dy, Matrix x, const float* packed_x) {
    std::int64_t column = 0;
    for (std::size_t i = 0; i < maps.size();) {
      const std::int64_t begin = column, offset = to_.of(maps[i]);
      column += shape_of(spec_, maps[i++]).rows;
      if (offset < 0) continue;
      while (i < maps.size() && to_.of(maps[i]) == offset + (column - begin) * x.columns)
        column += shape_of(spec_, maps[i++]).rows;
      weight_grad(team_, {dy.data + begin, rows_, column - begin, dy.ld}, packed_x, x.columns,
                  grad(offset));
    }
    if (!has_adapter(call_.lora, call_.layer, maps)) return;
    adapter_grads(team_, {*call_.lora, call_.layer, maps, dy, x, packed_x, call_.grads},
                  s_.adapters);
  }

  const Team team_;
  const LayerBackward& call_;
  const ModelSpec& spec_;
  const LayerOffsets& at_;  // offsets in the master weights
  const LayerOffsets& to_;  // offsets in the gradients
  const PackedLayer& packed_;
  BackwardScratch& s_;
  ProductScratch& products_;
  const bool sparse_;  // a mixture-of-experts layer
  const PlanView lists_;
  const std::int64_t rows_;
  const core::Range own_;
};

}  // namespace

void AttentionUnits::assign(const ForwardPlan& plan,
                            std::int64_t kv_heads,
                            const LayerWindows& windows,
                            int members) {
  sorted_.clear();
  for (std::size_t g = 0; g + 1 < plan.group_begin.size(); ++g) {
    const std::int32_t begin = plan.group_begin[g], end = plan.group_begin[g + 1];
    std::int64_t cost = 0;
    for (std::int32_t i = begin; i < end; ++i)
      cost += windows.keys_of(plan.segments[static_cast<std::size_t>(i)]);
    for (std::int64_t head = 0; head < kv_heads; ++head)
      sorted_.push_back({{begin, end, static_cast<std::int32_t>(head)}, cost, 0});
  }
  // Greedy: the most expensive unit first, each to the member with the least load so far.
  std::stable_sort(sorted_.begin(), sorted_.end(),
                   [](const Priced& a, const Priced& b) { return a.cost > b.cost; });
  load_.assign(static_cast<std::size_t>(members), 0);
  for (Priced& unit : sorted_) {
    const auto least = std::min_element(load_.begin(), load_.end());
    unit.member = static_cast<int>(least - load_.begin());
    *least += unit.cost;
  }
  units_.clear();
  begin_.assign(1, 0);
  for (int member = 0; member < members; ++member) {
    for (const Priced& unit : sorted_)
      if (unit.member == member) units_.push_back(unit.unit);
    begin_.push_back(units_.size());
  }
  placed_ = units_.data();
}

void BackwardScratch::reserve(core::TeamRunner& team,
                              const ModelSpec& spec,
                              std::int64_t rows,
                              std::int64_t kv_blocks,
                              kernels::KvDtype kv) {
  core::Memory& memory = team.memory();
  const std::int64_t ffn = spec.dense_ffn();
  normed.reserve_discard(rows * spec.hidden, memory);
  act.reserve_discard(rows * ffn, memory);
  dact.reserve_discard(rows * ffn, memory);
  moe.reserve(spec, rows);
  dnormed.reserve_discard(rows * spec.hidden, memory);
  dqkv.reserve_discard(rows * spec.qkv_width(), memory);
  dattention.reserve_discard(rows * spec.q_width(), memory);
  dbranch.reserve_discard(spec.post_norms ? rows * spec.hidden : 0, memory);
  dqk.reserve_discard(spec.qk_norm ? rows * (spec.q_width() + spec.kv_width()) : 0, memory);
  packed_wide.reserve_discard(kernels::packed_size(std::max(ffn, spec.q_width()), rows), memory);
  packed_hidden.reserve_discard(kernels::packed_size(spec.hidden, rows), memory);
  pool.reserve_discard(spec, kv_blocks, memory, kv);
  for (auto* buffer : {&dk_pool, &dv_pool})
    buffer->reserve_discard(kv_blocks * pool.block_size(), memory);
  products.resize(static_cast<std::size_t>(team.size()));
  for (ProductScratch& product : products) {
    product.reserve(memory, rows, std::max(2 * ffn, spec.qkv_width()), spec.hidden);
    product.reserve(memory, rows, spec.hidden, std::max(ffn, spec.q_width()));
    product.reserve(memory, rows, 2 * spec.moe.ffn, spec.hidden);
    product.reserve(memory, rows, spec.hidden, spec.moe.ffn);
  }
}

void layer_backward(Team team, const LayerBackward& call) {
  LayerPass(team, call).run();
}

void embedding_backward(
    Team team, const ForwardPlan& plan, const float* dx, std::int32_t skipped, ParamStore& grads) {
  const core::Range columns = team.share(grads.spec().hidden, kernels::kPanel);
  if (grads.layout().embedding < 0) return;
  if (!columns.empty()) {
    const kernels::EmbedGrad grad{.rows = plan.rows(),
                                  .hidden = grads.spec().hidden,
                                  .tokens = plan.view().tokens,
                                  .dx = dx,
                                  .scale = grads.spec().embed_scale,
                                  .table = grads.data() + grads.layout().embedding,
                                  .skipped = skipped};
    ops().embed_grad(grad, columns);
  }
  team.barrier();
}

std::int64_t kv_blocks_of(const ForwardPlan& plan) {
  std::int32_t most = -1;
  for (const std::int32_t block : plan.block_table)
    most = std::max(most, block);
  for (const std::int32_t slot : plan.slots) {
    most = std::max(most, slot / static_cast<std::int32_t>(kernels::kKvBlock));
  }
  return most + 1;
}

}  // namespace troupe::model
