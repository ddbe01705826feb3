// What is known about the tokens of one micro-batch besides their current log-probs l, packed: one
// entry per token in the order of the log-probs, samples one after the other. And the reducer's
// share of each token. Plain data on the trainer's thread; lives for one micro-batch.
#pragma once

#include "runtime/learn/settings.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe::learn {

struct TokenBatch {
  std::vector<double> advantage;     // A
  std::vector<double> weight;        // share of the token in the update's mean, from `token_weight`
  std::vector<double> behaviour;     // l_mu
  std::vector<double> anchor;        // l_p; empty means l_p = sg(l), or l_mu + a (sg(l) - l_mu)
  std::vector<double> reference;     // l_ref; empty without a reference
  std::vector<double> anchor_share;  // a of a3po; empty otherwise
  std::vector<double> keep;          // 0 where m2po masks the token; empty: all 1
  std::vector<std::size_t> sample_ends;  // where each sample's tokens end; empty: one sample
  double pair_weight = 0;  // kOnlineDpo: share of a pair of samples (best, worst) in the mean

  std::size_t size() const { return advantage.size(); }
};

// The reducer. An update of N policy tokens and S samples (all ranks, all micro-batches) is learnt
// from in M mini-batches, one optimiser step each; a token whose sample has T tokens weighs
//   kTokenMean   M / N          kSampleMean   M / (S T)          kConstant   M / (S constant)
// so that all tokens (or samples) of the update count the same, and a step has the scale of a mean.
double token_weight(Reducer reducer,
                    std::int64_t mini_batches,
                    std::int64_t update_tokens,
                    std::int64_t update_samples,
                    std::int64_t sample_tokens,
                    double constant = 1);

// [begin, end) of every sample's tokens.
struct TokenRange {
  std::size_t begin = 0, end = 0;
  double size() const { return static_cast<double>(end - begin); }
};
std::vector<TokenRange> sample_ranges(const TokenBatch& batch);

}  // namespace troupe::learn
