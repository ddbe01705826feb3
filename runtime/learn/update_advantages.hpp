// From the scores of an update's samples to one advantage per token, in a fixed order
// (docs/algorithms.md, "From scores to advantages"): normaliser, length shaping, clip, KL in the
// reward, group step, estimator, whitening. Sums run in ticket order, whatever the order of
// arrival. Plain C++ on doubles, on the trainer's thread.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/experience/group.hpp"
#include "runtime/learn/reward_shaping.hpp"
#include "runtime/learn/settings.hpp"

#include <vector>

namespace troupe::learn {

template <class Value>
using TokenTable = std::vector<std::vector<std::vector<Value>>>;  // [group][sample][token]

struct UpdateAdvantages {
  TokenTable<double> tokens;
  TokenTable<float> returns;  // of the values; empty without a critic
  double kl_of_sample = 0;    // mean over samples of their summed KL; 0 without a reference
};

// l_p - l of each token of `sample`, of the update's group number `group`. l_p is of the policy at
// the update's start: `scored`, or where that is empty the behaviour's own; l is `logprobs`.
std::vector<double> start_log_ratios(const TokenTable<float>& scored,
                                     const std::vector<experience::Group>& groups,
                                     std::size_t group,
                                     std::size_t sample,
                                     const std::vector<float>& logprobs);

// `moments` takes in the update's scores when the normaliser runs. `algo.kl_coef` is the
// coefficient of now; `groups` are those that check_experience has passed. Errors: those of
// `group_advantages`; kInvalidArgument for a sample without tokens.
core::Result<UpdateAdvantages> update_advantages(const AlgoSettings& algo,
                                                 const std::vector<experience::Group>& groups,
                                                 const TokenTable<float>& scored,
                                                 RunningMoments& moments);

// Indices of the groups, by ticket.
std::vector<std::size_t> by_ticket(const std::vector<experience::Group>& groups);

// Online DPO compares the best sample of a group with the worst: leaves these two, best first, in
// every group and in `scored`, with advantage 1 and -1. Best and worst go by the advantage of the
// first token; of equals the first sample counts. A group without a difference keeps its first two
// with advantage 0: it has nothing to teach.
void keep_best_and_worst(std::vector<experience::Group>& groups,
                         TokenTable<double>& advantages,
                         TokenTable<float>& scored);

}  // namespace troupe::learn
