// Adds a next-token loss on plain texts to each optimiser step of the policy, against forgetting
// (PPO-ptx, Ouyang et al. 2022). Owned by the trainer, used from its thread. Bound: as many texts
// per step as fill one micro-batch; they are dealt to the lanes.
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
  using Text = std::vector<std::int32_t>;
  // The texts of one step, of which each part is a micro-batch. They live as long as the term.
  struct Step {
    std::vector<std::vector<const Text*>> parts;
    std::uint64_t texts = 0;
    std::int64_t targets = 0;  // all tokens but a text's first
  };

  // There is at least one text, and none is longer than `rows_max` + 1 tokens. `team` and `forward`
  // outlive the term.
  PtxTerm(std::shared_ptr<const PtxTexts> texts,
          std::int64_t rows_max,
          core::TeamRunner& team,
          model::TrainForward& forward);

  double coef() const { return texts_->coef; }
  // Takes texts from place `cursor` of the endless stream on, until a micro-batch is full or there
  // are as many as a pass has, and cuts them into a part for each of `lanes` lanes, about equal in
  // size; fewer, if there are fewer texts.
  Step take(std::uint64_t cursor, std::int64_t lanes);
  // Packs part `part` so that no text attends to another, adds the gradient of coef * nll, and
  // returns nll: the sum of the part's losses / the step's targets. The parts' nll add up to the
  // step's mean loss of a token. If it is not finite, adds no gradient.
  core::Result<double> add(const model::PackedWeights& weights, const Step& step, std::size_t part);

 private:
  const Text& text_at(std::uint64_t place);

  const std::shared_ptr<const PtxTexts> texts_;
  const std::int64_t rows_max_;
  core::TeamRunner& team_;
  model::TrainForward& forward_;
  std::uint64_t pass_ = 0;
  std::vector<std::uint64_t> order_;  // of pass_; empty before the first use
  model::GroupPlan plan_;
};

}  // namespace troupe::learn
