#include "runtime/model/train_head.hpp"

#include "runtime/core/check.hpp"
#include "runtime/model/dense_rows.hpp"
#include "runtime/model/weights_gate.hpp"

namespace troupe::model {

using core::Team;
using kernels::ops;

void TrainHead::begin(const PackedWeights& weights,
                      const ForwardPlan& plan,
                      WeightsGate* gate,
                      std::int64_t logits_max) {
  weights_ = &weights;
  plan_ = &plan;
  gate_ = gate;
  logits_max_ = logits_max;
  core::Memory& memory = team_.memory();
  const std::int64_t floats = rows() * master_.spec().hidden;
  last_in_.reserve_discard(floats, memory);
  last_inv_rms_.reserve_discard(rows(), memory);
  in_.reserve_discard(floats, memory);
  if (grads_ == nullptr) return;
  din_.reserve_discard(floats, memory);
  dlast_.reserve_discard(floats, memory);
}

void TrainHead::open(bool backward) {
  if (gate_ != nullptr) gate_->open(parts_of(master_.spec()) - 1, backward);
}

void TrainHead::close(bool backward) {
  if (gate_ != nullptr) gate_->close(parts_of(master_.spec()) - 1, backward);
}

void TrainHead::forward_norm(const float* hidden) {
  open(false);
  team_.run([&](Team team) {
    kernels::flush_denormals();
    normalise_logit_rows(team, *weights_, *plan_, hidden, last_in_.data(), in_.data(),
                         last_inv_rms_.data());
  });
}

void TrainHead::forward(const TokenTargets& targets,
                        float temperature,
                        bool want_entropy,
                        const TeacherRows* teacher) {
  TROUPE_CHECK(master_.spec().head == HeadKind::kLanguage, "log-probs of a score model");
  targets_ = targets;
  head_.prepare(team_, master_.spec(),
                {.targets = targets_,
                 .rows = rows(),
                 .temperature = temperature,
                 .entropy = want_entropy,
                 .backward = grads_ != nullptr,
                 .logits_max = logits_max_,
                 .teacher = teacher});
  const HeadCall head = call();
  team_.run([&](Team team) { head_logprobs(team, head); });
  close(false);
  const auto count = static_cast<std::size_t>(targets.size());
  logprobs_.resize(count);
  entropies_.resize(want_entropy ? count : 0);
  head_.results(logprobs_, entropies_);
  divergences_.clear();
  if (teacher == nullptr) return;
  for (const DivergenceRow& row : head_.divergences())
    divergences_.push_back(static_cast<float>(row.divergence));
}

void TrainHead::forward_values() {
  value_head_.prepare(team_, master_.spec(), rows(), grads_ != nullptr);
  team_.run([&](Team team) {
    value_forward(team, *weights_, in_.data(), rows(), value_head_.values.data());
  });
  close(false);
  values_.resize(static_cast<std::size_t>(rows()));
  value_head_.values.download(values_);
}

void TrainHead::backward_values(const float* dvalues) {
  TROUPE_CHECK(grads_ != nullptr, "backward of a forward-only tape");
  open(true);
  value_head_.dvalues.upload({dvalues, values_.size()});
  const ValueGrad grad{in_.data(), rows(),  value_head_.dvalues.data(),
                       master_,    *grads_, din_.data()};
  team_.run([&](Team team) { value_backward(team, grad, value_head_); });
}

void TrainHead::backward(const float* dlogprobs,
                         const float* dentropies,
                         const float* ddivergences) {
  TROUPE_CHECK(grads_ != nullptr, "backward of a forward-only tape");
  open(true);
  head_.set_gradients(dlogprobs, dentropies);
  if (head_.divergence.on()) head_.set_divergence_gradients(ddivergences);
  const HeadCall head = call();
  const HeadGrad grad{master_, *grads_, din_.data()};
  team_.run([&](Team team) { head_backward(team, head, grad); });
  head_.kept = false;
}

void TrainHead::backward_norm(float* dx) {
  TROUPE_CHECK(grads_ != nullptr, "backward of a forward-only tape");
  const std::int64_t width = master_.spec().hidden;
  const std::int64_t count = rows();
  team_.run([&](Team team) {
    kernels::flush_denormals();
    const core::Range own = team.share(count);
    ops().zero(dlast_.data(), own.times(width));
    ops().zero(dx, team.share(plan_->rows()).times(width));
    if (!own.empty()) {
      norm_rows_backward(width, last_in_.data(), weights_->final_norm(), last_inv_rms_.data(),
                         din_.data(), dlast_.data(), own);
    }
    const core::Range columns = team.share(width, kernels::kPanel);
    const std::int64_t norm = grads_->layout().final_norm;
    if (norm >= 0 && !columns.empty()) {
      ops().rmsnorm_weight_grad({.rows = count,
                                 .x = last_in_.data(),
                                 .ldx = width,
                                 .inv_rms = last_inv_rms_.data(),
                                 .dy = din_.data(),
                                 .ldy = width,
                                 .dweight = grads_->data() + norm},
                                columns);
    }
    team.barrier();
    if (own.empty()) return;
    ops().copy_rows({.columns = width,
                     .from = dlast_.data(),
                     .ldf = width,
                     .to = dx,
                     .ldt = width,
                     .to_row = plan_->view().logit_rows},
                    own);
  });
  close(true);
}

}  // namespace troupe::model
