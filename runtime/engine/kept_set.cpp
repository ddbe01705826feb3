#include "runtime/engine/kept_set.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace troupe::engine {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
// Histogram of scores by distance below the maximum, in bins of 1/32; the last bin takes the rest.
constexpr float kBinsPerUnit = 32.0f;
constexpr std::int32_t kBins = 1024;
// The histogram skips blocks whose maximum lies further below the row's maximum than this. Most
// cuts lie nearer; if one does not, all tokens are gathered.
constexpr float kReach = 10.0f;
constexpr std::ptrdiff_t kSortAtMost = 24;  // candidates that are sorted instead of partitioned

bool cuts_k(const SamplingParams& params, std::int64_t vocab) {
  return params.top_k > 0 && params.top_k < vocab;
}

bool cuts_p(const SamplingParams& params) {
  return params.top_p < 1.0f;
}

}  // namespace

bool KeptSet::truncates(const SamplingParams& params, std::int64_t vocab) {
  return cuts_k(params, vocab) || cuts_p(params) || params.min_p > 0.0f;
}

void KeptSet::find(VocabRow& row, const SamplingParams& params) {
  if (kept_.capacity() == 0) {
    kept_.reserve(static_cast<std::size_t>(vocab_));
    ranked_.reserve(static_cast<std::size_t>(vocab_));
    scratch_.resize(static_cast<std::size_t>(row.blocks()));
    bins_.resize(kBins);
  }
  const Bounds bounds = bound(row, params);
  gather(row, bounds.floor);
  const bool by_k = cuts_k(params, vocab_);
  if (by_k && static_cast<std::int64_t>(kept_.size()) > params.top_k) {
    keep_through(last_of_top_k(params.top_k));
  }
  if (cuts_p(params)) {
    const double limit =
        static_cast<double>(params.top_p) *
        (by_k ? static_cast<double>(kept_mass()) : row.mass() * kernels::kMassUnits);
    if (const auto last = last_of_top_p(limit, bounds.ceiling)) keep_through(*last);
  }
  if (params.min_p > 0.0f) {
    std::erase_if(kept_, [&](const Candidate& token) { return token.weight < params.min_p; });
  }
  mass_ = kept_mass();
}

// Bounds of the last kept token's score, with a margin of one bin for rounding.
KeptSet::Bounds KeptSet::bound(VocabRow& row, const SamplingParams& params) {
  const bool by_k = cuts_k(params, vocab_), by_p = cuts_p(params);
  // With top-k and top-p, tokens below min-p still count in the mass that top-k left. Otherwise
  // they need not be gathered.
  const bool by_min_p = params.min_p > 0.0f && !(by_k && by_p);
  const float floor = by_min_p ? row.max() + std::log(params.min_p) - 0.01f : -kInfinity;
  if (by_k && params.top_k <= row.blocks()) {
    return {std::max(floor, score_of_block(row, params.top_k)), kInfinity};
  }
  if (!by_k && !by_p) return {floor, kInfinity};
  const double wanted = by_k ? static_cast<double>(params.top_k)
                             : static_cast<double>(params.top_p) * row.mass() * kernels::kMassUnits;
  const float from = std::max(floor, row.max() - kReach);
  count_scores(row, from, !by_k);
  std::uint64_t reached = 0;
  for (std::int32_t b = 0; b + 1 < kBins; ++b) {
    // Bins that reach below `from` do not have the tokens of the blocks that were skipped.
    if (row.max() - static_cast<float>(b + 2) / kBinsPerUnit < from) break;
    const Bin& bin = bins_[static_cast<std::size_t>(b)];
    reached += by_k ? static_cast<std::uint64_t>(bin.count) : bin.mass;
    if (!kernels::reaches(reached, wanted)) continue;
    const auto at = static_cast<float>(b);
    return {std::max(floor, row.max() - (at + 2.0f) / kBinsPerUnit),
            by_k ? kInfinity : row.max() - (at - 1.0f) / kBinsPerUnit};
  }
  return {floor, kInfinity};
}

// The k-th largest block maximum; at least k tokens score that much.
float KeptSet::score_of_block(const VocabRow& row, std::int32_t k) {
  for (std::int64_t b = 0; b < row.blocks(); ++b)
    scratch_[static_cast<std::size_t>(b)] = row.block_max(b);
  const auto at = scratch_.begin() + (k - 1);
  std::nth_element(scratch_.begin(), at, scratch_.end(), std::greater<>());
  return *at;
}

// Fills the histogram with the tokens that score at least `floor`.
void KeptSet::count_scores(VocabRow& row, float floor, bool masses) {
  std::fill(bins_.begin(), bins_.end(), Bin());
  float weights[kernels::kVocabBlock] = {};
  for (std::int64_t block = 0; block < row.blocks(); ++block) {
    if (!(row.block_max(block) >= floor)) continue;
    const std::span<float> scores = row.scores(block);
    for (float& score : scores)
      score -= row.max();
    if (masses) row.ops().exp(scores.data(), weights, static_cast<std::int64_t>(scores.size()));
    for (std::size_t i = 0; i < scores.size(); ++i) {
      const float below = std::min(-scores[i] * kBinsPerUnit, static_cast<float>(kBins - 1));
      Bin& bin = bins_[static_cast<std::size_t>(static_cast<std::int32_t>(below))];
      ++bin.count;
      bin.mass += kernels::mass_of(weights[i]);
    }
  }
}

// Puts all tokens that score at least `floor` into kept_, by id, and computes their weights.
void KeptSet::gather(VocabRow& row, float floor) {
  kept_.clear();
  for (std::int64_t block = 0; block < row.blocks(); ++block) {
    if (!(row.block_max(block) >= floor)) continue;
    const auto begin = static_cast<std::int32_t>(row.block_begin(block));
    const std::span<float> scores = row.scores(block);
    for (std::size_t i = 0; i < scores.size(); ++i) {
      if (scores[i] < floor || scores[i] == -kInfinity) continue;
      kept_.push_back({scores[i], 0.0f, begin + static_cast<std::int32_t>(i)});
    }
  }
  float weights[kernels::kVocabBlock];
  for (std::size_t at = 0; at < kept_.size(); at += kernels::kVocabBlock) {
    const std::size_t count =
        std::min(static_cast<std::size_t>(kernels::kVocabBlock), kept_.size() - at);
    for (std::size_t i = 0; i < count; ++i)
      weights[i] = kept_[at + i].score - row.max();
    row.ops().exp(weights, weights, static_cast<std::int64_t>(count));
    for (std::size_t i = 0; i < count; ++i)
      kept_[at + i].weight = weights[i];
  }
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

// The first token, in rank order, at which the running mass reaches `limit`; none if it never does.
std::optional<Candidate> KeptSet::last_of_top_p(double limit, float ceiling) {
  ranked_.clear();
  std::uint64_t before = 0;  // mass of the tokens that rank before `low`
  for (const Candidate& token : kept_) {
    if (token.score > ceiling) {
      before += token.mass();
    } else {
      ranked_.push_back(token);
    }
  }
  auto low = ranked_.begin();
  auto high = ranked_.end();
  while (high - low > kSortAtMost) {
    Candidate a = *low, b = *(low + (high - low) / 2), c = *(high - 1);
    if (ranks_before(b, a)) std::swap(a, b);
    if (ranks_before(c, b)) b = ranks_before(c, a) ? a : c;
    const Candidate pivot = b;  // the median of three, so at least one token ranks before it
    const auto split = std::partition(
        low, high, [&](const Candidate& token) { return ranks_before(token, pivot); });
    std::uint64_t mass = 0;
    for (auto token = low; token != split; ++token)
      mass += token->mass();
    if (kernels::reaches(before + mass, limit)) {
      high = split;
    } else {
      before += mass;
      low = split;
    }
  }
  std::sort(low, high, ranks_before);
  for (auto token = low; token != high; ++token) {
    before += token->mass();
    if (kernels::reaches(before, limit)) return *token;
  }
  return std::nullopt;
}

std::uint64_t KeptSet::kept_mass() const {
  std::uint64_t mass = 0;
  for (const Candidate& token : kept_)
    mass += token.mass();
  return mass;
}

}  // namespace troupe::engine
