// Draws on a GPU for which a token and its log-prob are not all: with truncation, changed logits or
// more to report, and log-probs of prompt tokens. What Sampler does on the host, with the same
// bits. Logits stay on the device; tokens, log-probs, entropies and most likely tokens return, in
// one copy for a step.
//
// Owned by a StepRunner, used on the engine's thread. For each step: `begin`, `add` for each such
// job in the order of its StepPlan, `place`, then `batch` after each batch of the DeviceStep, then
// `read`. What is submitted depends on the jobs, so it is not part of a recording; its lists lie
// next to those of the DeviceStep and move no address that a recording uses. Bounds: the lists of a
// step's jobs, with an entry for each logit that changes; a number for each head row and vocabulary
// block of a batch.
#pragma once

#include "kernels/ops.hpp"
#include "runtime/core/buffer.hpp"
#include "runtime/core/placed_lists.hpp"
#include "runtime/core/team.hpp"
#include "runtime/engine/draw_slots.hpp"
#include "runtime/engine/sampler.hpp"

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace troupe::engine {

class DeviceSampler {
 public:
  // `batch_rows`: the most head rows of a batch.
  DeviceSampler(std::int64_t vocab, std::int64_t batch_rows, core::TeamRunner& team);

  void begin(std::int64_t head_rows) { slots_.begin(head_rows); }
  void add(std::size_t index, const DrawJob& job, double u, const DrawHistory& history) {
    slots_.add(index, job, u, history);
  }
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
  struct Lists {  // on the device
    const std::int32_t *row, *target, *target_begin, *top_row, *top_begin;
    const double* uniform;
    const kernels::Truncation* truncation;
    const kernels::LogitChange* change;
    const kernels::Penalties* penalties;
  };

  void region();
  void draw(const kernels::VocabRows& rows, const DrawBatch& batch);
  void report(const kernels::VocabRows& rows, const DrawBatch& batch);
  kernels::VocabRows with_own_sums(kernels::VocabRows rows);
  float* floats(std::int64_t word) { return reinterpret_cast<float*>(words_.data() + word); }

  core::TeamRunner& team_;
  const std::int64_t blocks_, batch_rows_;
  const std::function<void(core::Team)> region_;
  DrawSlots slots_;
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
