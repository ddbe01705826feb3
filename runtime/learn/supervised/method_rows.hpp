// The table rows of the supervised methods. To add one, add a row here and a function in loss.cpp.
// Compile-time constants: loss.cpp uses them as they are, choices.cpp keeps them without `formula`.
#pragma once

#include "runtime/learn/supervised/methods.hpp"

#include <array>

namespace troupe::learn {

// The methods' loss functions (loss.cpp): one loss per row of data.
at::Tensor score_comparison(const RowTerms& terms);
at::Tensor kto_rows(const RowTerms& terms);
at::Tensor orpo_rows(const RowTerms& terms);
at::Tensor simpo_rows(const RowTerms& terms);
at::Tensor cpo_rows(const RowTerms& terms);
at::Tensor bco_rows(const RowTerms& terms);

consteval auto method_rows() {
  using data::RowKind;
  return std::array{
      Method{.name = "sft", .help = "next token of answers", .rows = RowKind::kAnswer},
      Method{.name = "pretrain", .help = "next token of whole texts", .rows = RowKind::kText},
      Method{.name = "rm",
             .help = "reward model, from pairs of answers",
             .rows = RowKind::kPair,
             .scores = true,
             .formula = score_comparison},
      Method{.name = "dpo",
             .help = "the better answer of a pair over the worse, against a reference",
             .rows = RowKind::kPair,
             .reference = true,
             .beta = "dpo.beta",
             .pair_loss = "sigmoid"},
      Method{.name = "ipo",
             .help = "as dpo, towards a fixed distance between the answers",
             .rows = RowKind::kPair,
             .reference = true,
             .beta = "dpo.beta",
             .pair_loss = "ipo"},
      Method{.name = "cdpo",
             .help = "dpo with a share of pairs taken to be labelled the wrong way round",
             .rows = RowKind::kPair,
             .reference = true,
             .beta = "dpo.beta",
             .pair_loss = "sigmoid"},
      Method{.name = "kto",
             .help = "single answers that are labelled good or bad, against a reference",
             .rows = RowKind::kRated,
             .reference = true,
             .beta = "kto.beta",
             .step_wide = StepWide::kMismatchedKl,
             .formula = kto_rows},
      Method{.name = "orpo",
             .help = "next token of better answers and their odds over the worse; no reference",
             .rows = RowKind::kPair,
             .beta = "orpo.beta",
             .length_mean = true,
             .nll = 1,
             .formula = orpo_rows},
      Method{.name = "simpo",
             .help = "mean log-prob of the better answer over the worse by a margin; no reference",
             .rows = RowKind::kPair,
             .beta = "simpo.beta",
             .length_mean = true,
             .formula = simpo_rows},
      Method{.name = "cpo",
             .help = "dpo without its reference, and the next token of better answers",
             .rows = RowKind::kPair,
             .beta = "cpo.beta",
             .formula = cpo_rows},
      Method{.name = "bco",
             .help = "single answers, classified as good or bad against a reference",
             .rows = RowKind::kRated,
             .reference = true,
             .beta = "bco.beta",
             .step_wide = StepWide::kRunningMean,
             .formula = bco_rows},
      Method{.name = "distill",
             .help = "next token of answers, and a teacher's distribution over it",
             .rows = RowKind::kAnswer,
             .teacher = true},
      Method{.name = "prm",
             .help = "process reward model, from texts with a label for each step",
             .rows = RowKind::kSteps},
  };
}

}  // namespace troupe::learn
