#include "runtime/learn/supervised/loss.hpp"
#include "runtime/learn/supervised/pair_loss_rows.hpp"
#include "runtime/learn/torch/tensors.hpp"

#include <cmath>

namespace troupe::learn {
namespace {

// h below is the h of docs/algorithms.md times beta.
at::Tensor scaled_margin(const RowTerms& t) {
  return t.chosen - t.rejected;
}

// Cross entropy of `h` with the label that is wrong in a share of the pairs.
at::Tensor smoothed(const at::Tensor& h, double share) {
  auto loss = -(1 - share) * at::log_sigmoid(h);
  if (share > 0) loss = loss - share * at::log_sigmoid(-h);
  return loss;
}

}  // namespace

at::Tensor sigmoid_loss(const RowTerms& t) {
  return smoothed(scaled_margin(t), t.settings.dpo.label_smoothing);
}

at::Tensor hinge_loss(const RowTerms& t) {
  return at::relu(1 - scaled_margin(t));
}

at::Tensor ipo_loss(const RowTerms& t) {
  const auto h = scaled_margin(t) / t.settings.beta;
  return at::square(h - 1 / (2 * t.settings.beta));
}

at::Tensor robust_loss(const RowTerms& t) {
  const auto h = scaled_margin(t);
  const double e = t.settings.dpo.label_smoothing;
  return (e * at::log_sigmoid(-h) - (1 - e) * at::log_sigmoid(h)) / (1 - 2 * e);
}

at::Tensor exo_pair_loss(const RowTerms& t) {
  const auto h = scaled_margin(t);
  const double e = t.settings.dpo.label_smoothing;
  return at::sigmoid(h) * (at::log_sigmoid(h) - std::log1p(-e)) +
         at::sigmoid(-h) * (at::log_sigmoid(-h) - std::log(e));
}

at::Tensor nca_pair_loss(const RowTerms& t) {
  return -at::log_sigmoid(t.chosen) - 0.5 * at::log_sigmoid(-t.chosen) -
         0.5 * at::log_sigmoid(-t.rejected);
}

at::Tensor sppo_hard_loss(const RowTerms& t) {
  const double beta = t.settings.beta, target = 1 / (2 * beta);
  return at::square(t.chosen / beta - target) + at::square(t.rejected / beta + target);
}

// h with the reference's log-ratio replaced by the one of equal rank in the step.
at::Tensor aot_loss(const RowTerms& t) {
  const RowFacts& facts = t.facts;
  std::vector<double> shift;
  for (std::size_t i = 0; i < facts.size(); ++i)
    shift.push_back(facts.reference_first[i] - facts.reference_second[i] - facts.matched[i]);
  return smoothed(scaled_margin(t) + t.settings.beta * tensor_of(shift),
                  t.settings.dpo.label_smoothing);
}

at::Tensor apo_zero_loss(const RowTerms& t) {
  return at::sigmoid(-t.chosen) + at::sigmoid(t.rejected);
}

at::Tensor apo_down_loss(const RowTerms& t) {
  return at::sigmoid(t.chosen) + at::sigmoid(t.rejected - t.chosen);
}

at::Tensor discopop_loss(const RowTerms& t) {
  const auto h = scaled_margin(t);
  const auto share = at::sigmoid(h / t.settings.dpo.discopop_tau);
  return (1 - share) * -at::log_sigmoid(h) + share * at::exp(-h);
}

}  // namespace troupe::learn
