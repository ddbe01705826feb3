// The losses of supervised and preference training (docs/algorithms.md, "Supervised and preference
// losses") over the model's log-probs or scores of one micro-batch's rows. Computed in f64 on ATen
// tensors with autograd; totals of the whole optimiser step make the losses of its micro-batches
// add up to the loss of the big batch. Stateless; runs on the trainer's thread.
#pragma once

#include "runtime/learn/supervised/settings.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace at {
class Tensor;
}

namespace troupe::learn {

// Inputs of the loss for the rows of a micro-batch besides the trained model's outputs; one entry
// per row. Vectors that a method does not read may be empty.
struct RowFacts {
  std::vector<double> first_tokens, second_tokens;        // targets of the (better), worse answer
  std::vector<double> reference_first, reference_second;  // sums of log-probs of the reference
  std::vector<double> margin;                             // of rm
  std::vector<double> desirable;                          // of kto: 1 or 0

  std::size_t size() const { return first_tokens.size(); }
};

// Totals over the whole optimiser step, which normalise the loss.
struct StepTotals {
  double rows = 0;
  double first_tokens = 0;  // targets of sequences or of better answers
  double z = 0;             // of kto: max(0, mean of g over mismatched pairs)
};

// Sums over rows, for metrics.
struct RowFigures {
  double loss = 0;  // share of the step's loss
  double nll = 0;   // sum over the tokens of (better) answers
  double rows = 0, first_tokens = 0;
  double chosen = 0, rejected = 0;            // sums of scores or implicit rewards
  double chosen_rows = 0, rejected_rows = 0;  // how many
  double correct = 0;                         // rows that are ordered or judged the right way
  double chosen_squares = 0, rejected_squares = 0;
  double chosen_logprobs = 0, rejected_logprobs = 0;

  void add(const RowFigures& other);
};

// Inputs of a method's `formula` (methods.hpp); the tensors have one entry per row.
struct RowTerms {
  const LossSettings& settings;
  const RowFacts& facts;
  const StepTotals& totals;
  const at::Tensor& chosen;    // beta (l - l_ref), or the scores of a reward model
  const at::Tensor& rejected;  // the same for the worse answers; undefined without pairs
};

// The micro-batch's share of the step's loss. `first` and `second` are f64 [rows] with grad: sums
// of log-probs of the answers, or scores; `second` is undefined where rows have one answer. Adds to
// `figures`.
at::Tensor supervised_loss(const LossSettings& settings,
                           const RowFacts& facts,
                           const StepTotals& totals,
                           const at::Tensor& first,
                           const at::Tensor& second,
                           RowFigures& figures);

struct SupervisedGradient {
  double loss = 0;
  std::vector<double> first, second;
  RowFigures figures;
};

// The sum, in order.
double sum_of(std::span<const double> values);

// The same from plain values, with d loss / d first and second.
SupervisedGradient supervised_gradient(const LossSettings& settings,
                                       const RowFacts& facts,
                                       const StepTotals& totals,
                                       const std::vector<double>& first,
                                       const std::vector<double>& second);

using Metrics = std::vector<std::pair<std::string, double>>;

// rewards/chosen, rewards/rejected, rewards/margins, rewards/accuracies, logps/chosen, ... as far
// as the method has them; without the loss itself.
Metrics row_metrics(const LossSettings& settings, const RowFigures& figures, double z);

}  // namespace troupe::learn
