// Finds the tokens that top-k, top-p and min-p keep, without sorting the vocabulary.
//
// Tokens are ranked by scaled score, ties by lower id. The cuts apply one after another, in the
// order of transformers and vLLM:
//   top-k keeps the first k;
//   top-p keeps a token while the mass before it is below p of the mass that top-k left;
//   min-p keeps tokens with at least min_p times the probability of the first.
// Each cut keeps the first tokens of the ranking, so finding the last kept token is enough. A lower
// bound of its score comes from the block maxima (top-k), from the parameter itself (min-p), or
// from a histogram of scores (top-p, large k). Tokens above the bound are gathered, and a
// quick-select among those near the bound finds the last one. Masses are whole numbers
// (kernels::mass_of), so their sums do not depend on the order in which this class, or a device,
// adds them. Scratch for one thread; no larger than the vocabulary.
#pragma once

#include "kernels/draw_shapes.hpp"
#include "runtime/engine/types.hpp"
#include "runtime/engine/vocab_row.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace troupe::engine {

struct Candidate {
  float score = 0.0f;   // scaled
  float weight = 0.0f;  // exp(score - max)
  std::int32_t id = 0;

  std::uint64_t mass() const { return kernels::mass_of(weight); }
};

// True when `a` ranks before `b`.
constexpr bool ranks_before(const Candidate& a, const Candidate& b) {
  return a.score > b.score || (a.score == b.score && a.id < b.id);
}

class KeptSet {
 public:
  explicit KeptSet(std::int64_t vocab) : vocab_(vocab) {}

  // True if the parameters can drop tokens of a vocabulary of this size.
  static bool truncates(const SamplingParams& params, std::int64_t vocab);

  // Finds the kept tokens of the row.
  void find(VocabRow& row, const SamplingParams& params);

  // The kept tokens by ascending id, and the sum of their masses.
  const std::vector<Candidate>& tokens() const { return kept_; }
  std::uint64_t mass() const { return mass_; }

 private:
  // The last token that top-k and top-p keep scores at least `floor` and at most `ceiling`.
  struct Bounds {
    float floor;
    float ceiling;
  };
  struct Bin {
    std::int32_t count = 0;
    std::uint64_t mass = 0;
  };

  Bounds bound(VocabRow& row, const SamplingParams& params);
  float score_of_block(const VocabRow& row, std::int32_t k);
  void count_scores(VocabRow& row, float floor, bool masses);
  void gather(VocabRow& row, float floor);
  void keep_through(const Candidate& last);
  Candidate last_of_top_k(std::int64_t k);
  std::optional<Candidate> last_of_top_p(double limit, float ceiling);
  std::uint64_t kept_mass() const;

  const std::int64_t vocab_;
  std::vector<float> scratch_;
  std::vector<Bin> bins_;          // by distance from the maximum
  std::vector<Candidate> kept_;    // by id
  std::vector<Candidate> ranked_;  // scratch of the selections
  std::uint64_t mass_ = 0;
};

}  // namespace troupe::engine
