// The table of supervised and preference methods (docs/algorithms.md, "Supervised and preference
// losses"): which rows a method learns from, what it reads of the model, and its loss. The rows are
// those of runtime/config/methods.def. Immutable; any thread.
#pragma once

#include "runtime/data/supervised_dataset.hpp"
#include "runtime/learn/supervised/pair_losses.hpp"

#include <span>
#include <string_view>

namespace at {
class Tensor;
}

namespace troupe::learn {

struct RowTerms;

struct Method {
  std::string_view name;
  data::RowKind rows = data::RowKind::kAnswer;
  bool scores = false;     // trains a model with a score head; else a language model
  bool reference = false;  // compares with a frozen model
  bool teacher = false;    // learns from the distributions of a frozen model
  std::string_view alias = {};
  std::string_view help;          // one line, for the configuration
  std::string_view title, page;   // `troupe train` and `troupe train METHOD` with --help
  std::string_view beta = {};     // configuration key of beta, the scale of what is compared
  std::string_view nll_key = {};  // key of a weight of the next-token loss of better answers
  // Row of the table of losses that the method is a preset of; "": it has a `formula` of its own.
  std::string_view pair_loss = {};
  std::string_view pair_loss_key = {};  // key that may name another row
  bool length_mean = false;             // compares an answer's mean log-prob, not the sum
  double nll = 0;  // weight of the next-token loss of better answers that belongs to it
  StepWide step_wide = StepWide::kNothing;
  // The losses of the data rows, [rows]; null without LibTorch, and for losses that are means over
  // tokens: the next-token loss and that of choices.
  at::Tensor (*formula)(const RowTerms& terms) = nullptr;

  bool pairs() const { return rows == data::RowKind::kPair; }
  bool rated() const { return rows == data::RowKind::kRated; }
  // Learns which token to choose at the placeholders of whole sequences (choice_loss.hpp).
  bool steps() const { return rows == data::RowKind::kSteps; }
  // Learns the next token of whole sequences; other rows are answers to a shared prompt.
  bool sequences() const { return !pairs() && !rated() && !steps(); }

  static std::span<const Method> all();
};

}  // namespace troupe::learn
