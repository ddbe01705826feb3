// A user's own advantages (algo.advantage_file): the arrays of an update go to a source, and a
// number for every token comes back. The program gives the policy's trainer the source, which it
// calls on its thread.
#pragma once

#include "runtime/core/result.hpp"

#include <cstdint>
#include <vector>

namespace troupe::learn {

// An update's samples in ticket order, and their tokens one after another. Lists that the run does
// not have are empty.
struct UpdateArrays {
  std::uint64_t update = 0;
  // By sample.
  std::vector<double> scores;     // weighted sums of the rewards, before shaping
  std::vector<double> groups;     // number of the sample's prompt in the update, from 0
  std::vector<double> lengths;    // tokens
  std::vector<double> truncated;  // 1 where the length ended the sample, else 0
  std::vector<double> episodes;   // number of its episode in its group
  // By token.
  std::vector<double> advantages;          // of the estimator
  std::vector<double> logprobs;            // at the update's start: l_p
  std::vector<double> sampled_logprobs;    // when sampled: l_mu
  std::vector<double> reference_logprobs;  // of the reference model
  std::vector<double> teacher_logprobs;    // of the teacher
  std::vector<double> versions;            // of the weights that sampled the token
  std::vector<double> values;              // of the critic
  std::vector<double> turns;               // number of the token's turn in its sample, from 0
};

// One number a token, finite.
struct TokenNumbers {
  std::vector<double> advantages;  // in place of the estimator's
  std::vector<double> weights;     // factors of the tokens' losses, at least 0
};

class AdvantageSource {
 public:
  virtual ~AdvantageSource() = default;
  virtual core::Result<TokenNumbers> compute(const UpdateArrays& update) = 0;
};

}  // namespace troupe::learn
