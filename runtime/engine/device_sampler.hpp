// Draws on a GPU for which a token and its log-prob are not all: with truncation, changed logits or
// more to report, and log-probs of prompt tokens. What Sampler does on the host, with the same
// bits. Logits stay on the device; tokens, log-probs, entropies and most likely tokens return, in
// one copy for a step.
//
// Owned by a StepRunner, used on the engine's thread. For each step: `begin`, `add` for each such
// job in the order of its StepPlan, `place`, then `batch` after each batch of the DeviceStep, then
// `read`. What is submitted depends on the jobs, so it is not part of a recording; its lists lie
// beside those of the DeviceStep and move no address that a recording uses. Bounds: the lists of a
// step's jobs, with an entry for each logit that changes; a number for each head row and vocabulary
// block of a batch.
#pragma once

#include "kernels/ops.hpp"
#include "runtime/core/buffer.hpp"
#include "runtime/core/placed_lists.hpp"
#include "runtime/core/team.hpp"
#include "runtime/engine/logit_changes.hpp"
#include "runtime/engine/sampler.hpp"
#include "runtime/engine/step_plan.hpp"

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace troupe::engine {

class DeviceSampler {
 public:
  // `batch_rows`: the most head rows of a batch.
  DeviceSampler(std::int64_t vocab, std::int64_t batch_rows, core::TeamRunner& team);

  // `head_rows`: of the whole step.
  void begin(std::int64_t head_rows);
  // Job number `index` of the step; `u` as for Sampler::draw.
  void add(std::size_t index, const DrawJob& job, double u, const DrawHistory& history);
  // Copies the lists to the device.
  void place();
  // Submits the draws of head rows from `row_begin`, a multiple of `batch_rows`; their logits and
  // partial sums are `rows`.
  void batch(const kernels::VocabRows& rows, std::int64_t row_begin);
  // Puts the results of all added jobs into `draws`, by their index, and the most likely tokens of
  // job i to top[top_begin[i]] and behind; waits for them.
  void read(std::span<Draw> draws,
            std::span<TokenLogprob> top,
            std::span<const std::size_t> top_begin);

 private:
  enum class Kind : std::uint8_t { kPlain, kKept, kScored };
  struct Entry {
    std::size_t index = 0;  // of the job
    std::int32_t row = 0;   // head row of the step
    Kind kind = Kind::kPlain;
    bool entropy = false, raw = false;
    std::int32_t top = 0;  // most likely tokens wanted
    std::int32_t top_begin = 0;
    std::int32_t target = 0;  // kScored
    double u = 0;             // below 0: greedy
    kernels::Truncation truncation;
  };
  // The part of one batch in the lists. Slots are entries, by kind.
  struct Batch {
    std::size_t plain = 0, kept = 0, scored = 0, end = 0;  // slots: where each kind begins
    std::size_t change_begin = 0, change_end = 0;
    std::size_t top_begin = 0, top_end = 0;
    core::Range rows;  // from the first with an entry to the last, counted from the batch's first
    bool entropy = false, raw = false;
  };
  struct Lists {  // on the device
    const std::int32_t *row, *target, *target_begin, *top_row, *top_begin;
    const double* uniform;
    const kernels::Truncation* truncation;
    const kernels::LogitChange* change;
    const kernels::Penalties* penalties;
  };

  void change(std::int32_t row, const SamplingParams& params, const DrawHistory& history);
  void sort_into_batches();
  void list_targets();
  void region();
  void draw(const kernels::VocabRows& rows, const Batch& batch);
  void report(const kernels::VocabRows& rows, const Batch& batch);
  kernels::VocabRows with_own_sums(kernels::VocabRows rows);
  float* floats(std::int64_t word) { return reinterpret_cast<float*>(words_.data() + word); }

  core::TeamRunner& team_;
  core::Memory& memory_;
  const std::int64_t vocab_, blocks_, batch_rows_;
  const std::function<void(core::Team)> region_;
  LogitChanges changes_of_;
  // By slot, after `place`.
  std::vector<Entry> entries_;
  std::vector<std::int32_t> rows_;  // counted from the batch's first
  std::vector<double> uniforms_;
  std::vector<kernels::Truncation> truncations_;
  std::vector<std::int32_t> tokens_;  // of kScored
  // By head row: the penalties, and where the row's slots begin in targets_.
  std::vector<kernels::Penalties> penalties_;
  std::vector<std::int32_t> target_begin_, targets_;
  std::vector<kernels::LogitChange> changes_;  // by row; their rows counted from the batch's first
  std::vector<std::int32_t> top_rows_, top_begin_;
  std::int32_t last_changed_ = -1;  // head row
  std::vector<Batch> batches_;
  core::PlacedLists placed_;
  Lists lists_{};
  // The results: tokens, log-probs and those at temperature 1 by slot, entropies by head row, most
  // likely tokens, their log-probs.
  core::Buffer<std::int32_t> words_;
  std::vector<std::int32_t> read_;                            // copy of words_ on the host
  std::int64_t entropy_at_ = 0, top_at_ = 0, words_end_ = 0;  // in words_
  // Scratch on the device: partial sums of changed rows or at temperature 1, by row of a batch, and
  // the logits from before a change.
  core::Buffer<float> own_max_, own_sum_, lse_, ones_, before_;
  // The current batch.
  kernels::VocabRows head_;
  std::int64_t row_begin_ = 0;
};

}  // namespace troupe::engine
