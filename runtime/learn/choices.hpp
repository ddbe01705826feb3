// Four small tables of named choices (KL estimators, loss reducers, the order of the reward's clip,
// credit over turns), and the names in all tables of algo.* and reward.* choices, for the
// configuration. Immutable; any thread.
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
  bool in_loss = true;               // may be in the loss, because its expected gradient is not 0
  double (*of)(double d) = nullptr;  // the estimate in the reward
  // The estimate in the loss, by token; null unless in_loss, and without LibTorch.
  at::Tensor (*formula)(const at::Tensor& d) = nullptr;

  static std::span<const KlEstimator> all();
};

// Totals of one update; each mini-batch is one optimiser step per pass.
struct UpdateCounts {
  double mini_batches = 1, tokens = 1;
  double samples = 1;  // episodes, where samples are forks of one
};

// Turns the losses of an update's tokens into one mean by giving each token a weight. The weights
// count over the whole update, so they do not depend on how it is cut into batches; the factor
// mini_batches gives each step the scale of a mean.
struct Reducer {
  std::string_view name, alias = {};
  std::string_view help;
  // `sample_tokens`: length of the token's sample, all drawn tokens of its episode; `constant`:
  // algo.reducer_constant, in tokens.
  double (*weight)(const UpdateCounts& counts, double sample_tokens, double constant) = nullptr;

  static std::span<const Reducer> all();
};

// What rewards inside an episode are credited to (docs/algorithms.md, "Over turns").
struct Credit {
  std::string_view name, alias = {};
  std::string_view help;
  bool by_turn = false;     // a turn counts as one action, with the sum of its tokens' rewards
  bool by_episode = false;  // rewards of steps and turns are part of the score

  static std::span<const Credit> all();
};

// Whether scores are clipped before the group step or its results after it.
struct ClipOrder {
  std::string_view name, alias = {};
  std::string_view help;
  bool after_group_step = false;

  static std::span<const ClipOrder> all();
};

// The allowed values of every configuration key whose choices are a table of this room.
std::vector<core::ChoiceTable> choice_tables();

}  // namespace troupe::learn
