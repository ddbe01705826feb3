// The numeric part of a step on a device: the model's layers over the plan's rows, the head over
// all head rows (in batches if their logits do not fit), and the draws. Only ids and log-probs come
// back to the host.
//
// Steps that only decode are padded to a few sizes (`decode_bucket`). The work of each size is
// recorded once (a CUDA graph) and replayed. A recording depends on the size and on the addresses
// of weights, pools and scratch, not on tokens or context. If an address changes, it is recorded
// again.
//
// Owned by a StepRunner, used on the engine's thread: call `begin`, then `batch` for ascending head
// rows, after each batch `read` for rows that the host needs, then `drawn`. Bounds:
// kDeviceLogits_bytes_max of logits; one recording a bucket.
#pragma once

#include "runtime/core/buffer.hpp"
#include "runtime/core/placed_lists.hpp"
#include "runtime/core/team.hpp"
#include "runtime/engine/step_plan.hpp"
#include "runtime/model/forward.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

namespace troupe::engine {

inline constexpr std::int64_t kDeviceLogits_bytes_max = 512ll << 20;

// Buffers for the head's output, some rows at a time: on a device, and on the host for rows that
// are computed there or come down from a device.
struct HeadRows {
  // Takes as many rows as fit `bytes_max` of logits, a multiple of eight, between `least` and
  // `most`.
  HeadRows(const model::ModelSpec& spec,
           std::int64_t bytes_max,
           std::int64_t least,
           std::int64_t most,
           core::Memory& memory);

  const std::int64_t vocab, blocks;  // tokens; blocks of them
  const std::int64_t ld;             // floats of a row of logits
  const std::int64_t count;          // rows
  core::Buffer<float> logits;        // [count, ld]
  core::Buffer<float> block_max;     // [count, blocks]
  core::Buffer<float> block_sum;
};

struct Drawn {
  std::int32_t token = 0;
  float logprob = 0.0f;  // not finite when the row's logits are not
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

  // `uniforms`: one a job of the step; below 0 the most likely token is drawn. Places the lists.
  void begin(const model::PackedWeights& weights,
             StepPlan& step,
             model::KvPool& pool,
             std::span<const double> uniforms);
  // Head rows [row_begin, row_end), at most `batch_rows`; the first batch runs the layers too.
  void batch(std::int64_t row_begin, std::int64_t row_end);
  // Rows [first, first + count) of the batch at hand, to the host; waits for them.
  void read(std::int64_t first, std::int64_t count, HeadRows& to);
  // The drawn tokens and log-probs of all jobs; waits for them. Valid until the next step.
  std::span<const Drawn> drawn();

  // Drops all recordings, before the memory that they point to is freed.
  void forget() { recorded_.clear(); }
  // Steps that were submitted from a recording.
  std::uint64_t replayed() const { return replayed_; }

 private:
  using Places = std::array<const void*, 26>;
  struct Recorded {
    Places places{};
    std::unique_ptr<core::Recording> work;  // null: the places were seen once
  };

  void region();
  bool replay();
  Places places() const;

  core::TeamRunner& team_;
  core::Memory& memory_;
  const std::int64_t step_rows_max_;
  HeadRows head_;
  const std::function<void(core::Team)> region_;
  bool draws_ = false;
  model::ForwardScratch scratch_;
  core::Buffer<std::int32_t> drawn_;  // tokens of all jobs, then the bits of their log-probs
  core::PlacedLists placed_;
  // The lists that `begin` sends to the device, by job or by head row; padded like the plan.
  std::vector<double> uniforms_;
  std::vector<std::int32_t> rows_;  // of the batch
  std::vector<float> inv_temperatures_;
  const double* uniform_at_ = nullptr;
  const std::int32_t* row_at_ = nullptr;
  const float* inv_temperature_at_ = nullptr;
  std::vector<std::int32_t> words_;  // drawn_, on the host
  std::vector<Drawn> results_;
  std::map<std::int64_t, Recorded> recorded_;  // by rows
  std::uint64_t replayed_ = 0;
  bool records_ = true;  // false once the team reports that it cannot record
  // The step at hand.
  const model::PackedWeights* weights_ = nullptr;
  const StepPlan* step_ = nullptr;
  model::KvPool* pool_ = nullptr;
  std::int64_t row_begin_ = 0, row_end_ = 0;  // of the batch
  std::size_t job_begin_ = 0, job_end_ = 0;
};

}  // namespace troupe::engine
