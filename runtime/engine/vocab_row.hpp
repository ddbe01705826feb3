// One row of logits seen as a distribution at its temperature, with some tokens changed: the
// scaled scores s = z * inv_temperature block by block, their maximum M, and the mass of each block
// relative to exp(M). All draws read the row through this class; sums run in a fixed order, in
// double over float exponentials of the kernels, so a result is the same on every instruction set.
// Scratch for one thread; reused for row after row without allocation.
#pragma once

#include "kernels/ops.hpp"
#include "runtime/engine/logit_changes.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::engine {

// What the head left behind for one row (model::head_forward).
struct HeadRow {
  const float* logits = nullptr;     // [vocab]
  const float* block_max = nullptr;  // [blocks] of z * inv_temperature
  const float* block_sum = nullptr;  // [blocks] of exp(z * inv_temperature - max)
  float inv_temperature = 1.0f;
  float lse = 0.0f;  // log-sum-exp of z * inv_temperature over the full vocabulary
};

class VocabRow {
 public:
  VocabRow(std::int64_t vocab, const kernels::Ops& ops);

  // `changed`: scores that replace those of the logits, ids ascending; minus infinity masks a
  // token, and at least one token stays. Must live as long as the row is read.
  void load(const HeadRow& row, std::span<const ChangedScore> changed);

  const kernels::Ops& ops() const { return ops_; }
  std::int64_t blocks() const { return blocks_; }
  std::int64_t block_begin(std::int64_t block) const { return block * kernels::kVocabBlock; }
  std::int64_t block_size(std::int64_t block) const;
  float max() const { return max_; }
  float block_max(std::int64_t block) const { return block_max_[static_cast<std::size_t>(block)]; }
  // Mass of one block, and of all, in units of exp(max()).
  double block_mass(std::int64_t block) const {
    return block_mass_[static_cast<std::size_t>(block)];
  }
  double mass() const { return mass_; }

  // Scaled scores of one block as changed; valid until the next call.
  std::span<float> scores(std::int64_t block);

 private:
  void restate(std::int64_t block);

  const kernels::Ops& ops_;
  const std::int64_t vocab_;
  const std::int64_t blocks_;
  HeadRow row_;
  std::span<const ChangedScore> changed_;
  float max_ = 0.0f;
  double mass_ = 0.0;
  std::vector<float> block_max_;
  std::vector<float> block_sum_;
  std::vector<float> block_scale_;  // exp(block_max - max)
  std::vector<double> block_mass_;
  std::vector<float> scores_;  // one block
};

}  // namespace troupe::engine
