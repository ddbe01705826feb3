// The loss of a process reward model: at each placeholder of a text the model chooses among tokens,
// and the cross entropy with the step's label is learned there and nowhere else (OpenRLHF's
// PRMLoss, docs/algorithms.md). Computed in f64 on ATen tensors with autograd, from log-probs of
// the whole vocabulary: among some tokens alone, a log-prob less the log-sum-exp of theirs is that
// of the choice. Stateless; runs on the trainer's thread.
#pragma once

#include "runtime/learn/supervised/loss.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::learn {

// The tokens whose log-probs are read at every placeholder: the reward tokens or, without any, all
// labels of `rows`, in ascending order.
std::vector<std::int32_t> choices_of(const LossSettings& settings,
                                     std::span<const data::SupervisedRow> rows);

// What is wanted at the placeholders of `rows`, in their order: [placeholders x choices], a
// distribution each. A hard label is 1 at its token; a soft one p at the first and 1 - p at the
// second.
std::vector<double> wanted_choices(std::span<const data::SupervisedRow> rows,
                                   std::span<const std::int32_t> choices);

// The share of the step's loss: -sum wanted log p(choice) / totals.first_tokens, where the
// probabilities are those among the reward tokens or, without any, of the whole vocabulary.
// `logprobs`: f64 [placeholders x choices], of the whole vocabulary, with grad. Adds to `figures`,
// whose rows are placeholders here: it is right where the likeliest choice is the wanted one, the
// first of equals; chosen and rejected are the probabilities of the first reward token at steps
// whose label is at least as much for it as not, and at the others.
at::Tensor choice_loss(const LossSettings& settings,
                       std::span<const double> wanted,
                       const StepTotals& totals,
                       const at::Tensor& logprobs,
                       RowFigures& figures);

}  // namespace troupe::learn
