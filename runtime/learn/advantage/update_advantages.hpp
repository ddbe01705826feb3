// Turns the scores of an update's samples into one advantage per token, in the order of
// docs/algorithms.md, "From scores to advantages": normaliser, length shaping, clip, KL in the
// reward, group step, rewards of steps, estimator, whitening, teacher. Sums run in ticket order,
// whatever the order of arrival. Plain C++ on doubles, on the trainer's thread.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/experience/group.hpp"
#include "runtime/learn/advantage/reward_shaping.hpp"
#include "runtime/learn/settings.hpp"

#include <vector>

namespace troupe::learn {

template <class Value>
using TokenTable = std::vector<std::vector<std::vector<Value>>>;  // [group][sample][token]

struct UpdateAdvantages {
  TokenTable<double> tokens;  // the advantages
  TokenTable<float> returns;  // the critic's value targets; empty without a critic
  double kl_of_sample = 0;    // mean over samples of their summed KL; 0 if algo.kl.init_coef is 0
  double kl_teacher = 0;      // mean over tokens of l_mu - log p_teacher; 0 without a teacher
};

// Bound of log p_teacher - l_mu in an advantage, both ways, as of the KL in the reward.
inline constexpr double kTeacherLogRatio_max = 10;

// l_p - l of each token of sample `sample` in group `group`. l_p, the log-probs at the update's
// start, are those in `scored`, or the behaviour log-probs if `scored` is empty; l is `logprobs`.
std::vector<double> start_log_ratios(const TokenTable<float>& scored,
                                     const std::vector<experience::Group>& groups,
                                     std::size_t group,
                                     std::size_t sample,
                                     const std::vector<float>& logprobs);

// Adds the update's scores to `moments` when the running normaliser is on. `algo.kl.init_coef` is
// the current coefficient; `groups` have passed check_experience; `scored` holds l_p, or is empty
// if l_p = l_mu. Errors: those of `group_advantages`; kInvalidArgument for a sample without tokens.
core::Result<UpdateAdvantages> update_advantages(const AlgoSettings& algo,
                                                 const std::vector<experience::Group>& groups,
                                                 const TokenTable<float>& scored,
                                                 RunningMoments& moments);

// Indices of the groups, in ticket order.
std::vector<std::size_t> by_ticket(const std::vector<experience::Group>& groups);

// For online DPO: reduces every group, and `scored`, to its best and its worst episode, best first,
// with advantages 1 and -1. An episode of one sample is ranked by the advantage of its first token,
// one that forks by the mean over its samples of their last; ties by lower index. A group whose
// episodes are all equal keeps its first two with advantage 0, so it gives no gradient.
void keep_best_and_worst(std::vector<experience::Group>& groups,
                         TokenTable<double>& advantages,
                         TokenTable<float>& scored);

}  // namespace troupe::learn
