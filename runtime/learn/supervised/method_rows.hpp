// The trainers' table of supervised methods, from the rows of runtime/config/methods.def.
// Compile-time constants: loss.cpp uses them as they are, choices.cpp keeps them without `formula`.
#pragma once

#include "runtime/config/method.hpp"
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
  using config::kNoTrait, config::kReference, config::kScores, config::kTeacher;
  return std::array{
#define METHOD(id, name_, rows_, traits, ...)     \
  Method{.name = name_,                           \
         .rows = data::RowKind::rows_,            \
         .scores = ((traits)&kScores) != 0,       \
         .reference = ((traits)&kReference) != 0, \
         .teacher = ((traits)&kTeacher) != 0,     \
         __VA_ARGS__},
#include "runtime/config/methods.def"
#undef METHOD
  };
}

}  // namespace troupe::learn
