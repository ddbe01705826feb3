// The inputs of the policy's loss for one micro-batch, besides the current log-probs l: flat
// vectors with one entry per response token, sample after sample, in the order of l. Plain data on
// the trainer's thread; lives for one micro-batch.
#pragma once

#include "runtime/learn/settings.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe::learn {

struct TokenBatch {
  std::vector<double> advantage;     // A
  std::vector<double> weight;        // weight of the token in the update's mean, from the reducer
  std::vector<double> behaviour;     // l_mu
  std::vector<double> anchor;        // l_p; empty: sg(l), or with anchor_share that of a3po
  std::vector<double> reference;     // l_ref; empty without a reference
  std::vector<double> anchor_share;  // a in a3po's l_p = l_mu + a (sg(l) - l_mu); empty otherwise
  std::vector<double> keep;          // 0 where m2po masks the token; empty: all 1
  std::vector<std::size_t> sample_ends;  // where each sample's tokens end; empty: one sample
  double pair_weight = 0;  // online_dpo: share of a pair of samples (best, worst) in the mean

  std::size_t size() const { return advantage.size(); }
};

// [begin, end) of every sample's tokens.
struct TokenRange {
  std::size_t begin = 0, end = 0;
  double size() const { return static_cast<double>(end - begin); }
};
std::vector<TokenRange> sample_ranges(const TokenBatch& batch);

}  // namespace troupe::learn
