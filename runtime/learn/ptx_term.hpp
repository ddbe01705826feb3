// Adds a next-token loss on plain texts to each optimiser step of the policy, against forgetting
// (PPO-ptx, Ouyang et al. 2022). Owned by the trainer, used from its thread. Bound: one micro-batch
// of texts per step.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/core/team.hpp"
#include "runtime/model/group_plan.hpp"
#include "runtime/model/packed.hpp"
#include "runtime/model/train_graph.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace troupe::learn {

// Tokenised texts of at least two tokens; built once, then read-only.
struct PtxTexts {
  std::vector<std::vector<std::int32_t>> texts;
  double coef = 0;         // weight of the mean loss of a token
  std::uint64_t seed = 0;  // seed of their order
};

// The order of one pass over `count` texts: a permutation made from (seed, pass) alone. PtxTerm
// reads pass after pass as one endless stream, so resuming needs nothing but the place in it.
std::vector<std::uint64_t> ptx_order(std::uint64_t count, std::uint64_t seed, std::uint64_t pass);

class PtxTerm {
 public:
  // What one step added: the mean loss of a token, before `coef`, and the number of texts.
  struct Part {
    double nll = 0;
    std::uint64_t texts = 0;
  };

  // There is at least one text, and none is longer than `rows_max` + 1 tokens. `team` and `forward`
  // outlive the term.
  PtxTerm(std::shared_ptr<const PtxTexts> texts,
          std::int64_t rows_max,
          core::TeamRunner& team,
          model::TrainForward& forward);

  double coef() const { return texts_->coef; }
  // Takes texts from place `cursor` of the endless stream on, until a micro-batch is full or there
  // are as many as a pass has, packs them so that no text attends to another, and adds the gradient
  // of coef * nll. If the loss is not finite, returns it and adds no gradient.
  core::Result<Part> add(const model::PackedWeights& weights, std::uint64_t cursor);

 private:
  const std::vector<std::int32_t>& text_at(std::uint64_t place);

  const std::shared_ptr<const PtxTexts> texts_;
  const std::int64_t rows_max_;
  core::TeamRunner& team_;
  model::TrainForward& forward_;
  std::uint64_t pass_ = 0;
  std::vector<std::uint64_t> order_;  // of pass_; empty before the first use
  model::GroupPlan plan_;
};

}  // namespace troupe::learn
