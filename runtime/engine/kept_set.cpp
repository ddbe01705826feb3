// Gathering by score, then selection of the last kept token.
#include "runtime/engine/kept_set.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace troupe::engine {
namespace {

// How far below the maximum scores are gathered, tried in turn; the last takes in every token.
constexpr float kReaches[] = {6.0f, 14.0f, 30.0f, std::numeric_limits<float>::infinity()};
constexpr std::ptrdiff_t kSortAtMost = 24;

bool cuts_k(const SamplingParams& params, std::int64_t vocab) {
  return params.top_k > 0 && params.top_k < vocab;
}

}  // namespace

bool KeptSet::truncates(const SamplingParams& params, std::int64_t vocab) {
  return cuts_k(params, vocab) || params.top_p < 1.0f || params.min_p > 0.0f;
}

void KeptSet::find(VocabRow& row, const SamplingParams& params) {
  if (gathered_.capacity() == 0) {
    for (auto* all : {&gathered_, &ranked_, &kept_})
      all->reserve(static_cast<std::size_t>(vocab_));
  }
  for (const float reach : kReaches) {
    if (gather(row, params, reach)) break;
  }
  kept_ = gathered_;
  double mass = row.mass();
  if (cuts_k(params, vocab_) && static_cast<std::int64_t>(kept_.size()) > params.top_k) {
    keep_through(last_of_top_k(params.top_k));
  }
  if (params.top_p < 1.0f) {
    if (cuts_k(params, vocab_)) {
      mass = 0.0;
      for (const Candidate& token : kept_)
        mass += static_cast<double>(token.weight);
    }
    Candidate last;
    if (last_of_top_p(static_cast<double>(params.top_p) * mass, last)) keep_through(last);
  }
  if (params.min_p > 0.0f) drop_below(params.min_p);
  mass_ = 0.0;
  for (const Candidate& token : kept_)
    mass_ += static_cast<double>(token.weight);
}

// Collects all tokens within `reach` of the maximum. True when every token that may be kept is
// there.
bool KeptSet::gather(VocabRow& row, const SamplingParams& params, float reach) {
  gathered_.clear();
  const float floor = row.max() - reach;
  for (std::int64_t block = 0; block < row.blocks(); ++block) {
    if (!(row.block_max(block) >= floor)) continue;
    const auto begin = static_cast<std::int32_t>(row.block_begin(block));
    const std::span<float> scores = row.scores(block);
    for (std::size_t i = 0; i < scores.size(); ++i) {
      if (scores[i] < floor || std::isinf(scores[i])) continue;
      gathered_.push_back({scores[i], 0.0f, begin + static_cast<std::int32_t>(i)});
    }
  }
  float weights[kernels::kVocabBlock];
  double mass = 0.0;
  for (std::size_t at = 0; at < gathered_.size(); at += kernels::kVocabBlock) {
    const std::size_t count =
        std::min(static_cast<std::size_t>(kernels::kVocabBlock), gathered_.size() - at);
    for (std::size_t i = 0; i < count; ++i)
      weights[i] = gathered_[at + i].score - row.max();
    row.ops().exp(weights, weights, static_cast<std::int64_t>(count));
    for (std::size_t i = 0; i < count; ++i) {
      gathered_[at + i].weight = weights[i];
      mass += static_cast<double>(weights[i]);
    }
  }
  if (std::isinf(reach)) return true;
  const bool min_p_inside = params.min_p > 0.0f && std::log(params.min_p) > 0.5f - reach;
  if (cuts_k(params, vocab_)) {
    const bool k_inside = static_cast<std::int64_t>(gathered_.size()) >= params.top_k;
    return k_inside || (min_p_inside && !(params.top_p < 1.0f));
  }
  const bool p_inside =
      params.top_p < 1.0f && mass >= static_cast<double>(params.top_p) * row.mass();
  return p_inside || min_p_inside;
}

void KeptSet::keep_through(const Candidate& last) {
  std::erase_if(kept_, [&](const Candidate& token) { return ranks_before(last, token); });
}

Candidate KeptSet::last_of_top_k(std::int64_t k) {
  ranked_ = kept_;
  const auto at = ranked_.begin() + static_cast<std::ptrdiff_t>(k - 1);
  std::nth_element(ranked_.begin(), at, ranked_.end(), ranks_before);
  return *at;
}

// The first token in rank order whose mass and the mass before it reach `limit`; false when none
// does.
bool KeptSet::last_of_top_p(double limit, Candidate& last) {
  ranked_ = kept_;
  auto low = ranked_.begin();
  auto high = ranked_.end();
  double before = 0.0;  // mass of what ranks before `low`
  while (high - low > kSortAtMost) {
    const auto middle = low + (high - low) / 2;
    Candidate a = *low, b = *middle, c = *(high - 1);
    if (ranks_before(b, a)) std::swap(a, b);
    if (ranks_before(c, b)) b = ranks_before(c, a) ? a : c;
    const Candidate pivot = b;  // the median of three: something ranks before it
    const auto split = std::partition(
        low, high, [&](const Candidate& token) { return ranks_before(token, pivot); });
    double mass = 0.0;
    for (auto token = low; token != split; ++token)
      mass += static_cast<double>(token->weight);
    if (before + mass >= limit) {
      high = split;
    } else {
      before += mass;
      low = split;
    }
  }
  std::sort(low, high, ranks_before);
  for (auto token = low; token != high; ++token) {
    before += static_cast<double>(token->weight);
    if (before >= limit) {
      last = *token;
      return true;
    }
  }
  return false;
}

void KeptSet::drop_below(float weight_min) {
  std::erase_if(kept_, [&](const Candidate& token) { return token.weight < weight_min; });
}

}  // namespace troupe::engine
