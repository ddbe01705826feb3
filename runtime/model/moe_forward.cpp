#include "runtime/model/moe_forward.hpp"

#include "kernels/ops.hpp"
#include "runtime/model/dense_rows.hpp"

#include <cstring>

namespace troupe::model {
namespace {

using kernels::ops;

class SparsePass {
 public:
  SparsePass(const Shares& shares,
             const ModelSpec& spec,
             const PackedMoe& weights,
             const LayerBuffers& io,
             std::int64_t rows)
      : shares_(shares),
        team_(shares.team()),
        spec_(spec),
        moe_(spec.moe),
        weights_(weights),
        io_(io),
        rows_(rows),
        own_(shares.rows()) {}

  void run() {
    shares_.gemm(product(io_.normed, spec_.hidden, weights_.router, io_.moe.routing.scores,
                         moe_.router_rows(), io_.moe.routing.lds));
    shares_.meet();
    route_rows(moe_, io_.moe.routing, own_.begin, own_.end);
    team_.barrier();
    place_rows(moe_, io_.moe.routing, rows_, own_.begin, own_.end, ranges_);
    // With a single row, all its experts read that row in place; no copy is needed.
    if (rows_ > 1) {
      gather();
      team_.barrier();
    }
    gate_up();
    if (io_.out == nullptr) return;
    team_.barrier();
    activate();
    team_.barrier();
    down();
    team_.barrier();
    mix();
  }

 private:
  kernels::Gemm product(const float* a,
                        std::int64_t k,
                        const kernels::Panels& b,
                        float* c,
                        std::int64_t n,
                        std::int64_t ldc) const {
    return {.m = rows_, .n = n, .k = k, .a = a, .lda = k, .b = b, .c = c, .ldc = ldc};
  }

  // Runs one product per expert on its rows. c is [pairs, n]; a + i * step is the input of pair i.
  template <class PanelsOf>
  void expert_products(const float* a,
                       std::int64_t step,
                       std::int64_t k,
                       float* c,
                       std::int64_t n,
                       PanelsOf&& panels_of_expert) const {
    share_expert_panels(team_, moe_.experts, ranges_, n,
                        [&](std::int64_t e, std::int64_t panel_begin, std::int64_t panel_end) {
                          const std::int64_t first = ranges_.first(e), rows = ranges_.rows(e);
                          const PackedExpert& expert =
                              weights_.experts[static_cast<std::size_t>(e)];
                          const kernels::Gemm gemm{.m = rows,
                                                   .n = n,
                                                   .k = k,
                                                   .a = a + first * step,
                                                   .lda = k,
                                                   .b = panels_of_expert(expert),
                                                   .c = c + first * n,
                                                   .ldc = n};
                          ops().gemm(gemm, {0, rows}, {panel_begin, panel_end});
                        });
  }

  void gather() const {
    const std::int64_t k = moe_.experts_per_token;
    const auto bytes = static_cast<std::size_t>(spec_.hidden) * sizeof(float);
    for (std::int64_t i = own_.begin * k; i < own_.end * k; ++i) {
      std::memcpy(io_.moe.gathered + io_.moe.routing.place[i] * spec_.hidden,
                  io_.normed + i / k * spec_.hidden, bytes);
    }
  }

  void gate_up() const {
    const bool one = rows_ == 1;
    expert_products(one ? io_.normed : io_.moe.gathered, one ? 0 : spec_.hidden, spec_.hidden,
                    io_.moe.gate_up, 2 * moe_.ffn,
                    [](const PackedExpert& expert) { return expert.gate_up; });
    if (!moe_.has_shared()) return;
    shares_.gemm(product(io_.normed, spec_.hidden, weights_.shared.gate_up, io_.gate_up,
                         2 * moe_.shared_ffn, 2 * moe_.shared_ffn));
  }

  void activate() const {
    const Range pairs = team_.share(rows_ * moe_.experts_per_token);
    if (!pairs.empty()) {
      gate_rows(spec_.activation, io_.moe.gate_up, moe_.ffn, io_.moe.act, pairs);
    }
    if (moe_.has_shared() && !own_.empty()) {
      gate_rows(spec_.activation, io_.gate_up, moe_.shared_ffn, io_.act, own_);
    }
  }

  void down() const {
    expert_products(io_.moe.act, moe_.ffn, moe_.ffn, io_.moe.y, spec_.hidden,
                    [](const PackedExpert& expert) { return expert.down; });
    if (!moe_.has_shared()) return;
    shares_.gemm(product(io_.act, moe_.shared_ffn, weights_.shared.down, io_.moe.shared_y,
                         spec_.hidden, spec_.hidden));
  }

  void mix() const {
    const Routing& routing = io_.moe.routing;
    kernels::MixRows mix{.n = spec_.hidden,
                         .choices = moe_.experts_per_token,
                         .y = io_.moe.y,
                         .ldy = spec_.hidden,
                         .place = routing.place,
                         .weight = routing.weight,
                         .residual = io_.x_mid,
                         .ldr = spec_.hidden,
                         .out = io_.out,
                         .ldo = spec_.hidden};
    if (moe_.has_shared()) {
      mix.extra = io_.moe.shared_y;
      mix.ldx = spec_.hidden;
      mix.extra_weight = routing.scores + moe_.experts;
      mix.ldw = routing.lds;
    }
    if (!own_.empty()) ops().mix_rows(mix, own_);
  }

  const Shares& shares_;
  const core::Team& team_;
  const ModelSpec& spec_;
  const MoeSpec& moe_;
  const PackedMoe& weights_;
  const LayerBuffers& io_;
  const std::int64_t rows_;
  const Range own_;
  ExpertRanges ranges_;
};

}  // namespace

void sparse_feed_forward(const Shares& shares,
                         const ModelSpec& spec,
                         const PackedMoe& weights,
                         const LayerBuffers& io,
                         std::int64_t rows) {
  SparsePass(shares, spec, weights, io, rows).run();
}

void copy_choices(core::Team team,
                  const ModelSpec& spec,
                  const Routing& routing,
                  std::span<const std::int32_t> rows,
                  std::int64_t sparse,
                  std::uint16_t* out) {
  const std::int64_t k = spec.moe.experts_per_token;
  const auto [begin, end] = team.share(std::ssize(rows));
  for (std::int64_t i = begin; i < end; ++i) {
    const std::int32_t* from = routing.expert + rows[static_cast<std::size_t>(i)] * k;
    std::uint16_t* to = out + i * routed_width(spec) + sparse * k;
    for (std::int64_t c = 0; c < k; ++c)
      to[c] = static_cast<std::uint16_t>(from[c]);
  }
}

}  // namespace troupe::model
