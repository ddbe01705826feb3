// The losses of supervised and preference training (docs/algorithms.md, "Supervised and preference
// losses") over the model's log-probs or scores of one micro-batch's rows. Computed in f64 on ATen
// tensors with autograd. Losses are normalised by totals of the whole optimiser step, so those of
// its micro-batches add up to the step's loss. Stateless; runs on the trainer's thread.
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

// Inputs of the loss for the rows of a micro-batch, besides the trained model's outputs; one entry
// per row. "First" is the better answer of a pair or a row's only answer, "second" the worse one.
// Vectors that a method does not read may be empty.
struct RowFacts {
  std::vector<double> first_tokens, second_tokens;        // number of target tokens
  std::vector<double> reference_first, reference_second;  // sums of the reference's log-probs
  std::vector<double> margin;                             // of rm
  std::vector<double> desirable;                          // of rated rows: 1 for good, else 0
  // aot: of the pairs in ascending order of the model's log-ratios, the k-th has the k-th smallest
  // log-ratio of the reference; [rows].
  std::vector<double> matched = {};

  std::size_t size() const { return first_tokens.size(); }
};

// Totals over the whole optimiser step, which normalise the loss.
struct StepTotals {
  double rows = 0;
  double first_tokens = 0;  // target tokens of sequences or of first answers; placeholders of prm
  // What kto and bco compare g = sum(l - l_ref) of an answer with: max(0, its mean over mismatched
  // pairs); its mean over all rows of the run so far.
  double z = 0;
  std::vector<std::int32_t> choices = {};  // prm: tokens that are read at each placeholder
};

// Sums over rows, for metrics.
struct RowFigures {
  double loss = 0;                    // share of the step's loss
  double nll = 0;                     // of the tokens of first answers
  double rows = 0, first_tokens = 0;  // prm: both count placeholders
  // Scores or implicit rewards of better (kto: good) and of worse (kto: bad) answers.
  double chosen = 0, rejected = 0;
  double chosen_rows = 0, rejected_rows = 0;          // number of these answers
  double correct = 0;                                 // rows ordered or judged the right way
  double chosen_squares = 0, rejected_squares = 0;    // of the scores or rewards
  double chosen_logprobs = 0, rejected_logprobs = 0;  // of first and of second answers
  double divergence = 0;                              // from the teacher, of first answers' tokens

  void add(const RowFigures& other);
};

// Inputs of a method's `formula` (methods.hpp); the tensors have one entry per row.
struct RowTerms {
  const LossSettings& settings;
  const RowFacts& facts;
  const StepTotals& totals;
  // For first answers: beta (l - l_ref), beta l without a reference, or a reward model's scores.
  const at::Tensor& chosen;
  const at::Tensor& rejected;  // those of second answers; undefined without pairs
};

// Returns the micro-batch's share of the step's loss. `first` and `second` are f64 [rows] with
// grad: the sum of each answer's log-probs, or its score; `second` is undefined where rows have one
// answer. `divergence`, the same, is the sum over the answer's tokens of the divergence from the
// teacher; undefined without one. Adds to `figures`.
at::Tensor supervised_loss(const LossSettings& settings,
                           const RowFacts& facts,
                           const StepTotals& totals,
                           const at::Tensor& first,
                           const at::Tensor& second,
                           const at::Tensor& divergence,
                           RowFigures& figures);

struct SupervisedGradient {
  double loss = 0;
  std::vector<double> first, second;  // derivatives of the loss; [rows]
  RowFigures figures;
};

// The sum of `values`, added in order.
double sum_of(std::span<const double> values);

// supervised_loss of plain values, with its derivatives by `first` and `second`.
SupervisedGradient supervised_gradient(const LossSettings& settings,
                                       const RowFacts& facts,
                                       const StepTotals& totals,
                                       const std::vector<double>& first,
                                       const std::vector<double>& second,
                                       const std::vector<double>& divergence = {});

using Metrics = std::vector<std::pair<std::string, double>>;

// rewards/chosen, rewards/rejected, rewards/margins, rewards/accuracies, logps/chosen, ... as far
// as the method has them; without the loss itself.
Metrics row_metrics(const LossSettings& settings, const RowFigures& figures, double z);

}  // namespace troupe::learn
