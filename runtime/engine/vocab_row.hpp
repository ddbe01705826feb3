// One row of logits z as the distribution from which a token is drawn, with the scores of some
// tokens changed: the scaled scores s = z * inv_temperature by vocabulary block, their maximum M,
// and the mass of each block relative to exp(M). All draws on the CPU read a row through this
// class. Masses are summed in a fixed order, in double over float exponentials of the kernels, so
// results are the same on every instruction set. Scratch for one thread; loading another row
// allocates nothing.
#pragma once

#include "kernels/ops.hpp"
#include "runtime/engine/logit_changes.hpp"
#include "runtime/engine/token_guide.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::engine {

// The head's output for one row (model::head_forward).
struct HeadRow {
  const float* logits = nullptr;     // [vocab]
  const float* block_max = nullptr;  // [blocks] max of z * inv_temperature
  const float* block_sum = nullptr;  // [blocks] sum of exp(z * inv_temperature - block_max)
  float inv_temperature = 1.0f;
  float lse = 0.0f;  // log-sum-exp of z * inv_temperature over the full vocabulary
};

class VocabRow {
 public:
  VocabRow(std::int64_t vocab, const kernels::Ops& ops);

  // `changed`: scaled scores that replace those of the logits, ids ascending. Minus infinity masks
  // a token, and so does a bit of `allowed` that is 0 (as GuideMask::words; empty: all are
  // allowed). At least one token stays unmasked. The arguments must outlive the reads.
  void load(const HeadRow& row,
            std::span<const ChangedScore> changed,
            std::span<const std::uint32_t> allowed = {});

  const kernels::Ops& ops() const { return ops_; }
  std::int64_t blocks() const { return blocks_; }
  std::int64_t block_begin(std::int64_t block) const { return block * kernels::kVocabBlock; }
  std::int64_t block_size(std::int64_t block) const;
  float max() const { return max_; }
  float block_max(std::int64_t block) const { return block_max_[static_cast<std::size_t>(block)]; }
  // The mass (sum of exp(s)) of one block, and of all blocks, in units of exp(max()).
  double block_mass(std::int64_t block) const {
    return block_mass_[static_cast<std::size_t>(block)];
  }
  double mass() const { return mass_; }

  // The scaled scores of one block, with the changes. A copy that the caller may overwrite; valid
  // until the next call.
  std::span<float> scores(std::int64_t block);

 private:
  void restate(std::int64_t block);
  void restate_masked();
  std::span<const std::uint32_t> allowed_in(std::int64_t block) const;

  const kernels::Ops& ops_;
  const std::int64_t vocab_;
  const std::int64_t blocks_;
  HeadRow row_;
  std::span<const ChangedScore> changed_;
  std::span<const std::uint32_t> allowed_;
  float max_ = 0.0f;
  double mass_ = 0.0;
  std::vector<float> block_max_;
  std::vector<float> block_sum_;
  std::vector<float> block_scale_;  // exp(block_max - max)
  std::vector<double> block_mass_;
  std::vector<float> scores_;  // one block
};

}  // namespace troupe::engine
