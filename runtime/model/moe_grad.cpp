#include "runtime/model/moe_grad.hpp"

#include "kernels/ops.hpp"
#include "runtime/model/dense_rows.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace troupe::model {
namespace {

using core::Team;
using kernels::ops;

float dot(const float* x, const float* y, std::int64_t count) {
  return lane_sum(count, [&](std::int64_t i) { return x[i] * y[i]; });
}

void scale(float* x, std::int64_t count, float factor) {
  for (std::int64_t i = 0; i < count; ++i)
    x[i] = x[i] * factor;
}

class SparseBackwardPass {
 public:
  SparseBackwardPass(Team team, const SparseBackward& call)
      : team_(team),
        c_(call),
        moe_(call.spec.moe),
        routing_(call.io.moe.routing),
        hidden_(call.spec.hidden),
        own_(team.share(call.rows)) {}

  void run() {
    gather();
    team_.barrier();
    output_grads();
    team_.barrier();
    through_activation();
    team_.barrier();
    pack();
    team_.barrier();
    products();
    team_.barrier();
    mix();
  }

 private:
  Matrix weight(std::int64_t offset, std::int64_t rows, std::int64_t columns) const {
    return {c_.master + offset, rows, columns, columns};
  }
  // The rows of expert e in a [pairs, columns] matrix.
  Matrix rows_of(const float* pairs, std::int64_t e, std::int64_t columns) const {
    return {pairs + ranges_.first(e) * columns, ranges_.rows(e), columns, columns};
  }
  Matrix all_rows(const float* data, std::int64_t columns) const {
    return {data, c_.rows, columns, columns};
  }
  // Calls body(expert, offsets of its weights, offsets of its gradients) for each expert that was
  // chosen.
  template <class Body>
  void each_expert(Body&& body) const {
    for (std::int64_t e = 0; e < moe_.experts; ++e) {
      const auto i = static_cast<std::size_t>(e);
      if (ranges_.rows(e) > 0) body(e, c_.at.experts[i], c_.to.experts[i]);
    }
  }

  // Copies the rows of x and dy to their pairs, and recomputes the activations.
  void gather() {
    place_rows(moe_, routing_, c_.rows, own_.begin, own_.end, ranges_);
    const std::int64_t k = moe_.experts_per_token;
    const auto bytes = static_cast<std::size_t>(hidden_) * sizeof(float);
    for (std::int64_t i = own_.begin * k; i < own_.end * k; ++i) {
      const std::int64_t to = routing_.place[i] * hidden_, from = i / k * hidden_;
      std::memcpy(c_.io.moe.gathered + to, c_.normed + from, bytes);
      std::memcpy(c_.io.moe.y + to, c_.dy + from, bytes);
    }
    const core::Range pairs = team_.share(c_.rows * k);
    if (!pairs.empty()) {
      gate_rows(c_.spec.activation, c_.io.moe.gate_up, moe_.ffn, c_.io.moe.act, pairs);
    }
    if (moe_.has_shared() && !own_.empty()) {
      gate_rows(c_.spec.activation, c_.io.gate_up, moe_.shared_ffn, c_.act, own_);
    }
  }

  // Computes W_down^T dy, not yet multiplied by the routing weight.
  void output_grads() {
    each_expert([&](std::int64_t e, const ExpertOffsets& at, const ExpertOffsets&) {
      input_grad(team_, rows_of(c_.io.moe.y, e, hidden_), weight(at.down, hidden_, moe_.ffn),
                 c_.scratch.dact.data() + ranges_.first(e) * moe_.ffn, moe_.ffn, c_.products);
    });
    if (moe_.has_shared()) {
      input_grad(team_, all_rows(c_.dy, hidden_),
                 weight(c_.at.shared.down, hidden_, moe_.shared_ffn), c_.dact, moe_.shared_ffn,
                 c_.products);
    }
    pack_input(team_, all_rows(c_.normed, hidden_), c_.packed_normed);
  }

  // For this member's rows: computes the gradients of the routing weights and of the router's
  // logits, multiplies act and its gradient by the weight, and goes back through activation(gate) *
  // up.
  void through_activation() {
    const std::int64_t k = moe_.experts_per_token;
    std::array<float, kExperts_max> dw;
    for (std::int64_t row = own_.begin; row < own_.end; ++row) {
      for (std::int64_t i = 0; i < k; ++i) {
        dw[static_cast<std::size_t>(i)] =
            weighted_backward(c_.io.moe.gate_up, c_.io.moe.act, c_.scratch.dact.data(), moe_.ffn,
                              routing_.place[row * k + i], routing_.weight[row * k + i]);
      }
      float* scores = routing_.scores + row * routing_.lds;
      routing_backward(moe_, scores, routing_.expert + row * k, routing_.weight + row * k,
                       dw.data(), c_.balance);
      if (!moe_.has_shared()) continue;
      float& gate = scores[moe_.experts];
      const float dgate =
          weighted_backward(c_.io.gate_up, c_.act, c_.dact, moe_.shared_ffn, row, gate);
      gate = dgate * (gate * (1.0f - gate));
    }
  }

  // Goes back through one row of y = weight * down(act). Returns the gradient of the weight.
  // Multiplies act and dact by the weight, and overwrites gate_up with its gradient.
  float weighted_backward(float* gate_up,
                          float* act,
                          float* dact,
                          std::int64_t ffn,
                          std::int64_t row,
                          float weight) const {
    const float dweight = dot(act + row * ffn, dact + row * ffn, ffn);
    scale(act + row * ffn, ffn, weight);
    scale(dact + row * ffn, ffn, weight);
    gate_rows_backward(c_.spec.activation, gate_up, ffn, dact, {row, row + 1});
    return dweight;
  }

  float* packed_of(core::Buffer<float>& packed, std::int64_t e, std::int64_t columns) const {
    return packed.data() + kernels::packed_size(columns, ranges_.first(e));
  }

  void pack() {
    each_expert([&](std::int64_t e, const ExpertOffsets&, const ExpertOffsets& to) {
      if (to.down >= 0) {
        pack_input(team_, rows_of(c_.io.moe.act, e, moe_.ffn),
                   packed_of(c_.scratch.packed_act, e, moe_.ffn));
      }
      if (std::max(to.gate, to.up) >= 0) {
        pack_input(team_, rows_of(c_.io.moe.gathered, e, hidden_),
                   packed_of(c_.scratch.packed_rows, e, hidden_));
      }
    });
    if (c_.to.shared.down >= 0) {
      pack_input(team_, all_rows(c_.act, moe_.shared_ffn), c_.packed_act);
    }
  }

  // Adds the weight gradients of gate and up if they are trained; in one product if both are.
  void gate_up_grads(Matrix dgate_up,
                     const ExpertOffsets& to,
                     std::int64_t ffn,
                     const float* packed_x) const {
    if (to.gate >= 0 && to.up == to.gate + ffn * hidden_) {
      weight_grad(team_, dgate_up, packed_x, hidden_, c_.grads + to.gate);
      return;
    }
    dgate_up.columns = ffn;
    if (to.gate >= 0) weight_grad(team_, dgate_up, packed_x, hidden_, c_.grads + to.gate);
    dgate_up.data += ffn;
    if (to.up >= 0) weight_grad(team_, dgate_up, packed_x, hidden_, c_.grads + to.up);
  }

  void products() {
    each_expert([&](std::int64_t e, const ExpertOffsets& at, const ExpertOffsets& to) {
      const Matrix dgate_up = rows_of(c_.io.moe.gate_up, e, 2 * moe_.ffn);
      if (to.down >= 0) {
        weight_grad(team_, rows_of(c_.io.moe.y, e, hidden_),
                    packed_of(c_.scratch.packed_act, e, moe_.ffn), moe_.ffn, c_.grads + to.down);
      }
      gate_up_grads(dgate_up, to, moe_.ffn, packed_of(c_.scratch.packed_rows, e, hidden_));
      // The gathered rows are packed by now, so their buffer can take their gradient.
      input_grad(team_, dgate_up, weight(at.gate, 2 * moe_.ffn, hidden_),
                 c_.io.moe.gathered + ranges_.first(e) * hidden_, hidden_, c_.products);
    });
    router_products();
    if (moe_.has_shared()) shared_products();
  }

  void router_products() {
    const Matrix dscores{routing_.scores, c_.rows, moe_.router_rows(), routing_.lds};
    if (c_.to.router >= 0) {
      const Matrix of_experts{dscores.data, c_.rows, moe_.experts, dscores.ld};
      weight_grad(team_, of_experts, c_.packed_normed, hidden_, c_.grads + c_.to.router);
    }
    if (c_.to.shared_gate >= 0) {
      const Matrix of_gate{dscores.data + moe_.experts, c_.rows, 1, dscores.ld};
      weight_grad(team_, of_gate, c_.packed_normed, hidden_, c_.grads + c_.to.shared_gate);
    }
    input_grad(team_, dscores, weight(c_.at.router, moe_.router_rows(), hidden_), c_.dnormed,
               hidden_, c_.products);
  }

  void shared_products() {
    const Matrix dgate_up = all_rows(c_.io.gate_up, 2 * moe_.shared_ffn);
    if (c_.to.shared.down >= 0) {
      // act already includes the gate's weight, so dy is used unscaled.
      weight_grad(team_, all_rows(c_.dy, hidden_), c_.packed_act, moe_.shared_ffn,
                  c_.grads + c_.to.shared.down);
    }
    gate_up_grads(dgate_up, c_.to.shared, moe_.shared_ffn, c_.packed_normed);
    input_grad(team_, dgate_up, weight(c_.at.shared.gate, 2 * moe_.shared_ffn, hidden_),
               c_.io.moe.shared_y, hidden_, c_.products);
  }

  // Adds the experts' gradients to dnormed, then the shared expert's.
  void mix() {
    if (own_.empty()) return;
    kernels::MixRows mix{.n = hidden_,
                         .choices = moe_.experts_per_token,
                         .y = c_.io.moe.gathered,
                         .ldy = hidden_,
                         .place = routing_.place,
                         .residual = c_.dnormed,
                         .ldr = hidden_,
                         .out = c_.dnormed,
                         .ldo = hidden_};
    if (moe_.has_shared()) {
      mix.extra = c_.io.moe.shared_y;
      mix.ldx = hidden_;
    }
    ops().mix_rows(mix, own_);
  }

  const Team team_;
  const SparseBackward& c_;
  const MoeSpec& moe_;
  const Routing& routing_;
  const std::int64_t hidden_;
  const core::Range own_;
  ExpertRanges ranges_;
};

}  // namespace

void MoeGradScratch::reserve(const ModelSpec& spec, std::int64_t rows) {
  if (!spec.moe.any()) return;
  const std::int64_t pairs = rows * spec.moe.experts_per_token;
  dact.reserve_discard(pairs * spec.moe.ffn);
  packed_act.reserve_discard(kernels::packed_size(spec.moe.ffn, pairs));
  packed_rows.reserve_discard(kernels::packed_size(spec.hidden, pairs));
}

void sparse_backward(Team team, const SparseBackward& call) {
  SparseBackwardPass(team, call).run();
}

void routing_backward(const MoeSpec& spec,
                      float* p,
                      const std::int32_t* chosen,
                      const float* weight,
                      const float* dw,
                      const float* balance) {
  const std::int64_t k = spec.experts_per_token;
  float shift = 0.0f, sum = 1.0f;
  if (spec.norm_topk) {
    shift = dot(dw, weight, k);
    sum = 0.0f;
    for (std::int64_t i = 0; i < k; ++i)
      sum += p[chosen[i]];
  }
  const auto dp = [&](std::int64_t i) { return (dw[i] - shift) / sum; };
  float mean = 0.0f;
  for (std::int64_t i = 0; i < k; ++i)
    mean += p[chosen[i]] * dp(i);
  float level = 0.0f;
  for (std::int64_t e = 0; e < spec.experts && balance != nullptr; ++e)
    level += p[e] * balance[e];
  std::int64_t next = 0;  // `chosen` is in ascending order
  for (std::int64_t e = 0; e < spec.experts; ++e) {
    const bool is_chosen = next < k && chosen[next] == e;
    const float of_weights = (is_chosen ? dp(next) : 0.0f) - mean;
    p[e] = p[e] * (balance == nullptr ? of_weights : of_weights + (balance[e] - level));
    if (is_chosen) ++next;
  }
}

}  // namespace troupe::model
