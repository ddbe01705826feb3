// The smaller tables of choices of the learning side: KL estimators, reducers and the order of the
// reward's clip; and the names in all tables, for the configuration. Immutable; any thread.
#pragma once

#include "runtime/core/choice.hpp"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace at {
class Tensor;
}

namespace troupe::learn {

// Estimates the KL from d = l - l_ref of one token; the rows are in loss_rows.hpp.
struct KlEstimator {
  std::string_view name, alias = {};
  std::string_view help;
  bool in_loss = true;                                   // has an expected gradient
  double (*of)(double d) = nullptr;                      // in the reward
  at::Tensor (*formula)(const at::Tensor& d) = nullptr;  // in the loss; null without LibTorch

  static std::span<const KlEstimator> all();
};

// Totals of one update; M mini-batches are M optimiser steps per pass.
struct UpdateCounts {
  double mini_batches = 1, tokens = 1, samples = 1;
};

// The weight of a token in the update's mean. All tokens (or samples) of an update count the same,
// and each step has the scale of a mean.
struct Reducer {
  std::string_view name, alias = {};
  std::string_view help;
  // `sample_tokens`: of the token's sample; `constant`: algo.reducer_constant.
  double (*weight)(const UpdateCounts& counts, double sample_tokens, double constant) = nullptr;

  static std::span<const Reducer> all();
};

struct ClipOrder {
  std::string_view name, alias = {};
  std::string_view help;
  bool after_group_step = false;

  static std::span<const ClipOrder> all();
};

// The allowed values of every configuration key whose choices are a table of this room.
std::vector<core::ChoiceTable> choice_tables();

}  // namespace troupe::learn
