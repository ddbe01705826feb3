// The toy task of `troupe bench lag`: a prompt of a few symbols, to be answered with the same
// symbols backwards. Solvable only by looking at the prompt, and every right symbol counts, so that
// a policy made from a seed learns it within seconds. Pure functions.
#pragma once

#include "runtime/core/rng.hpp"
#include "runtime/model/params.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace troupe::app {

struct LagTask {
  std::int32_t symbols = 8;  // and one token that ends the prompt
  std::int32_t prompt_symbols = 3;
  std::int32_t answer_tokens = 3;

  std::int32_t vocab() const { return symbols + 1; }
  // x_1 .. x_n and the end of the prompt.
  std::vector<std::int32_t> prompt(core::Rng& rng) const;
  // Share of right tokens: y_t must be x_{n+1-t}.
  double score(std::span<const std::int32_t> prompt, std::span<const std::int32_t> answer) const;
};

// A model of about 20 thousand weights, all from the seed.
model::ModelSpec lag_spec(const LagTask& task, model::HeadKind head);
std::unique_ptr<model::ParamStore> lag_model(const LagTask& task,
                                             model::HeadKind head,
                                             std::uint64_t seed);

}  // namespace troupe::app
