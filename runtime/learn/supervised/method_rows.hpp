// The table rows of the supervised methods. To add one, add a row here and a function in loss.cpp.
// Compile-time constants: loss.cpp uses them as they are, choices.cpp keeps them without `formula`.
#pragma once

#include "runtime/learn/supervised/methods.hpp"

#include <array>

namespace troupe::learn {

// The methods' loss functions (loss.cpp): one loss per row of data.
at::Tensor score_comparison(const RowTerms& terms);
at::Tensor dpo_rows(const RowTerms& terms);
at::Tensor ipo_rows(const RowTerms& terms);
at::Tensor kto_rows(const RowTerms& terms);

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
             .formula = dpo_rows},
      Method{.name = "ipo",
             .help = "as dpo, towards a fixed distance between the answers",
             .rows = RowKind::kPair,
             .reference = true,
             .beta = "dpo.beta",
             .formula = ipo_rows},
      Method{.name = "cdpo",
             .help = "dpo with a share of pairs taken to be labelled the wrong way round",
             .rows = RowKind::kPair,
             .reference = true,
             .beta = "dpo.beta",
             .formula = dpo_rows},
      Method{.name = "kto",
             .help = "single answers that are labelled good or bad, against a reference",
             .rows = RowKind::kRated,
             .reference = true,
             .beta = "kto.beta",
             .formula = kto_rows},
  };
}

}  // namespace troupe::learn
