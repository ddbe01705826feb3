#include "runtime/learn/supervised/loss.hpp"

#include "runtime/core/check.hpp"
#include "runtime/learn/supervised/method_rows.hpp"
#include "runtime/learn/supervised/pair_loss_rows.hpp"
#include "runtime/learn/torch/tensors.hpp"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <numeric>

namespace troupe::learn {
namespace {

// The rows with their `formula`, which calls LibTorch; Method::all() has them without it.
constexpr auto kMethodRows = method_rows();
constexpr auto kPairLossRows = pair_loss_rows();

// A log-prob nearer to 0 than this counts as this, so that the odds stay finite.
constexpr double kLogProb_max = -1e-12;

using Formula = at::Tensor (*)(const RowTerms& terms);

Formula formula_of(const LossSettings& s) {
  const PairLoss* const row = s.pair_row();
  if (row == nullptr) return kMethodRows[s.method.index()].formula;
  return kPairLossRows[Chosen<PairLoss>(*row).index()].formula;
}

// The divisor of a mean over `tokens` tokens: at least 1, so that an answer that was cut to no
// token has the mean 0.
at::Tensor at_least_one(const std::vector<double>& tokens) {
  return at::clamp_min(tensor_of(tokens), 1);
}
double at_least_one(double tokens) {
  return std::max(tokens, 1.0);
}

// beta (l - l_ref) of each row's answers, beta l without a reference, or their scores by a reward
// model; [rows].
struct Rewards {
  at::Tensor chosen, rejected;
};

Rewards rewards_of(const LossSettings& s,
                   const RowFacts& facts,
                   const at::Tensor& first,
                   const at::Tensor& second) {
  Rewards out{first, second};
  if (s.method->scores) return out;
  if (s.method->reference) {
    TROUPE_CHECK(facts.reference_first.size() == facts.size(), "one reference log-prob per answer");
    out.chosen = first - tensor_of(facts.reference_first);
    if (second.defined()) out.rejected = second - tensor_of(facts.reference_second);
  }
  if (s.takes_means()) {
    out.chosen = out.chosen / at_least_one(facts.first_tokens);
    out.rejected = out.rejected / at_least_one(facts.second_tokens);
  }
  out.chosen = s.beta * out.chosen;
  if (second.defined()) out.rejected = s.beta * out.rejected;
  return out;
}

void note_rewards(const LossSettings& s,
                  const RowFacts& facts,
                  const StepTotals& totals,
                  const Rewards& rewards,
                  RowFigures& figures) {
  const std::vector<double> chosen = values_of(rewards.chosen);
  const bool pairs = s.method->pairs();
  const std::vector<double> rejected =
      pairs ? values_of(rewards.rejected) : std::vector<double>(chosen.size(), 0);
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const bool good = pairs || facts.desirable[i] != 0;
    const auto note = [](double value, double& sum, double& squares, double& rows) {
      sum += value;
      squares += value * value;
      rows += 1;
    };
    if (good) note(chosen[i], figures.chosen, figures.chosen_squares, figures.chosen_rows);
    if (pairs || !good) {
      note(pairs ? rejected[i] : chosen[i], figures.rejected, figures.rejected_squares,
           figures.rejected_rows);
    }
    const double ahead = pairs ? chosen[i] - rejected[i] : chosen[i] - s.beta * totals.z;
    figures.correct += (ahead > 0) == good ? 1 : 0;
  }
}

}  // namespace

at::Tensor score_comparison(const RowTerms& t) {
  return -at::log_sigmoid(t.chosen - t.rejected - tensor_of(t.facts.margin));
}

at::Tensor kto_rows(const RowTerms& t) {
  const LossSettings& s = t.settings;
  const auto good = tensor_of(t.facts.desirable);
  const auto z = s.beta * t.totals.z;  // scaled as t.chosen, which is beta g
  const auto gain = s.kto.desirable_weight * (1 - at::sigmoid(t.chosen - z));
  const auto cost = s.kto.undesirable_weight * (1 - at::sigmoid(z - t.chosen));
  return good * gain + (1 - good) * cost;
}

at::Tensor orpo_rows(const RowTerms& t) {
  const double beta = t.settings.beta;
  const auto log_odds = [&](const at::Tensor& reward) {
    const auto mean = at::clamp_max(reward / beta, kLogProb_max);
    return mean - at::log(-at::expm1(mean));
  };
  return -beta * at::log_sigmoid(log_odds(t.chosen) - log_odds(t.rejected));
}

at::Tensor simpo_rows(const RowTerms& t) {
  return -at::log_sigmoid(t.chosen - t.rejected - t.settings.simpo.gamma);
}

at::Tensor cpo_rows(const RowTerms& t) {
  return -at::log_sigmoid(t.chosen - t.rejected);
}

at::Tensor bco_rows(const RowTerms& t) {
  const auto good = tensor_of(t.facts.desirable);
  const auto lead = t.chosen - t.settings.beta * t.totals.z;
  return -good * at::log_sigmoid(lead) - (1 - good) * at::log_sigmoid(-lead);
}

double sum_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

void RowFigures::add(const RowFigures& other) {
  loss += other.loss;
  nll += other.nll;
  rows += other.rows;
  first_tokens += other.first_tokens;
  chosen += other.chosen;
  rejected += other.rejected;
  chosen_rows += other.chosen_rows;
  rejected_rows += other.rejected_rows;
  correct += other.correct;
  chosen_squares += other.chosen_squares;
  rejected_squares += other.rejected_squares;
  divergence += other.divergence;
  chosen_logprobs += other.chosen_logprobs;
  rejected_logprobs += other.rejected_logprobs;
}

at::Tensor supervised_loss(const LossSettings& s,
                           const RowFacts& facts,
                           const StepTotals& totals,
                           const at::Tensor& first,
                           const at::Tensor& second,
                           const at::Tensor& divergence,
                           RowFigures& figures) {
  TROUPE_CHECK(first.numel() == static_cast<std::int64_t>(facts.size()), "one value per row");
  TROUPE_CHECK(s.method->pairs() == second.defined(), "pairs have two values a row");
  TROUPE_CHECK(s.method->teacher == divergence.defined(), "with a teacher rows have a divergence");
  RowFigures own;
  own.rows = static_cast<double>(facts.size());
  own.first_tokens = sum_of(facts.first_tokens);
  at::Tensor loss;
  const Formula formula = formula_of(s);
  if (formula == nullptr) {
    auto sum = -first.sum();
    if (divergence.defined()) {
      sum = (1 - s.distill.coef) * sum + s.distill.coef * divergence.sum();
      own.divergence = divergence.sum().item<double>();
    }
    loss = sum / at_least_one(totals.first_tokens);
  } else {
    const Rewards rewards = rewards_of(s, facts, first, second);
    loss = formula({s, facts, totals, rewards.chosen, rewards.rejected}).sum() / totals.rows;
    const double nll = s.nll_weight();
    if (nll != 0) loss = loss - nll * first.sum() / at_least_one(totals.first_tokens);
    note_rewards(s, facts, totals, rewards, own);
  }
  if (!s.method->scores) {
    own.nll = -first.sum().item<double>();
    own.chosen_logprobs = -own.nll;
    if (second.defined()) own.rejected_logprobs = second.sum().item<double>();
  }
  own.loss = loss.item<double>();
  figures.add(own);
  return loss;
}

SupervisedGradient supervised_gradient(const LossSettings& settings,
                                       const RowFacts& facts,
                                       const StepTotals& totals,
                                       const std::vector<double>& first,
                                       const std::vector<double>& second,
                                       const std::vector<double>& divergence) {
  const c10::AutoGradMode with_grad(true);
  auto a = tensor_of(first).requires_grad_(true);
  at::Tensor b;
  if (!second.empty()) b = tensor_of(second).requires_grad_(true);
  at::Tensor c;
  if (!divergence.empty()) c = tensor_of(divergence);
  SupervisedGradient out;
  const auto loss = supervised_loss(settings, facts, totals, a, b, c, out.figures);
  loss.backward();
  out.loss = loss.item<double>();
  out.first = values_of(a.grad());
  if (b.defined()) out.second = values_of(b.grad());
  return out;
}

Metrics row_metrics(const LossSettings& s, const RowFigures& f, double z) {
  Metrics rows;
  const auto mean = [](double sum, double count) { return count > 0 ? sum / count : 0.0; };
  if (s.method->teacher) {
    rows.emplace_back("policy/nll", mean(f.nll, f.first_tokens));
    rows.emplace_back("policy/divergence", mean(f.divergence, f.first_tokens));
  }
  if (s.method->sequences()) return rows;
  const double chosen = mean(f.chosen, f.chosen_rows);
  const double rejected = mean(f.rejected, f.rejected_rows);
  if (f.chosen_rows > 0) rows.emplace_back("rewards/chosen", chosen);
  if (f.rejected_rows > 0) rows.emplace_back("rewards/rejected", rejected);
  if (f.chosen_rows > 0 && f.rejected_rows > 0) {
    rows.emplace_back("rewards/margins", chosen - rejected);
  }
  rows.emplace_back("rewards/accuracies", mean(f.correct, f.rows));
  if (s.step_wide() == StepWide::kMismatchedKl) rows.emplace_back("kl/z", z);
  if (s.step_wide() == StepWide::kRunningMean) rows.emplace_back("rewards/delta", s.beta * z);
  if (s.method->pairs() && !s.method->scores) {
    rows.emplace_back("logps/chosen", mean(f.chosen_logprobs, f.rows));
    rows.emplace_back("logps/rejected", mean(f.rejected_logprobs, f.rows));
  }
  if (s.nll_weight() != 0) rows.emplace_back("policy/nll", mean(f.nll, f.first_tokens));
  return rows;
}

}  // namespace troupe::learn
