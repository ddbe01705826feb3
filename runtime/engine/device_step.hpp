// Computes an engine step on a GPU: the model's layers over the plan's rows, the head over all head
// rows (in batches if their logits do not fit), and the draws. For a token drawn on the device,
// only its id and log-prob return to the host. A DeviceSampler draws the tokens of jobs that ask
// for more, from `rows`. Where the device's table has no draws, `read` fetches logits for the host.
//
// Steps that only decode are padded to a few sizes (`decode_bucket`). The work of each size is
// recorded once (a CUDA graph) and replayed (step_recordings.hpp).
//
// Owned by a StepRunner, used on the engine's thread. For each step call `begin`, then `batch` for
// ascending head rows (after each batch `read` for the rows that the host needs), then `drawn`.
// Bound: kDeviceLogits_bytes_max of logits.
#pragma once

#include "runtime/core/buffer.hpp"
#include "runtime/core/team.hpp"
#include "runtime/engine/plain_draws.hpp"
#include "runtime/engine/step_plan.hpp"
#include "runtime/engine/step_recordings.hpp"
#include "runtime/model/forward.hpp"

#include <cstdint>
#include <functional>
#include <span>

namespace troupe::engine {

inline constexpr std::int64_t kDeviceLogits_bytes_max = 512ll << 20;

// Buffers for the output of the head, for a limited number of rows at a time: in device memory, or
// in host memory for rows that the CPU computes or that are copied from a device.
struct HeadRows {
  // The number of rows is a multiple of eight whose logits fit `bytes_max`, then clamped to `least`
  // and `most`.
  HeadRows(const model::ModelSpec& spec,
           std::int64_t bytes_max,
           std::int64_t least,
           std::int64_t most,
           core::Memory& memory);

  const std::int64_t vocab, blocks;  // tokens; vocabulary blocks
  const std::int64_t ld;             // floats per row of `logits`
  const std::int64_t count;          // rows
  core::Buffer<float> logits;        // [count, ld]
  core::Buffer<float> block_max;     // [count, blocks]
  core::Buffer<float> block_sum;     // [count, blocks]
};

class DeviceStep {
 public:
  DeviceStep(const model::ModelSpec& spec,
             std::int32_t sequences_max,
             std::int32_t step_tokens_max,
             core::TeamRunner& team);

  // Whether the device draws tokens; otherwise the host draws every row.
  bool draws() const { return draws_; }
  std::int64_t batch_rows() const { return head_.count; }

  // Starts a step and copies its lists to the device; `uniforms` as for PlainDraws.
  void begin(const model::PackedWeights& weights,
             StepPlan& step,
             model::KvPool& pool,
             std::span<const double> uniforms);
  // Submits head and draws for head rows [row_begin, row_end), at most `batch_rows` of them. The
  // first batch (row_begin 0) also runs the layers.
  void batch(std::int64_t row_begin, std::int64_t row_end);
  // The last batch's logits and their partial sums, on the device.
  kernels::VocabRows rows();
  // Copies head rows [first, first + count) of the last batch, counted from its first row, to `to`
  // in host memory; waits for them.
  void read(std::int64_t first, std::int64_t count, HeadRows& to);
  // The token and log-prob of each job; waits for them. Valid until the next step.
  std::span<const Drawn> drawn() { return plain_.read(); }

  // Drops all recordings, before the memory that they point to is freed.
  void forget() { recordings_.forget(); }
  // How many steps were submitted from a recording.
  std::uint64_t replayed() const { return recordings_.submitted(); }

 private:
  void region();
  StepRecordings::Places places() const;

  core::TeamRunner& team_;
  core::Memory& memory_;
  const std::int64_t step_rows_max_;
  HeadRows head_;
  const std::function<void(core::Team)> region_;
  bool draws_ = false;
  model::ForwardScratch scratch_;
  PlainDraws plain_;
  StepRecordings recordings_;
  // The current step.
  const model::PackedWeights* weights_ = nullptr;
  const StepPlan* step_ = nullptr;
  model::KvPool* pool_ = nullptr;
  std::int64_t row_begin_ = 0, row_end_ = 0;  // the current batch
  core::Range jobs_;
};

}  // namespace troupe::engine
