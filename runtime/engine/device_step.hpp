// Computes an engine step on a GPU: the model's layers over the plan's rows, the head over all head
// rows (in batches if their logits do not fit), and the draws. For a token drawn on the device,
// only its id and log-prob return to the host. A DeviceSampler draws the tokens of jobs that ask
// for more, from `rows`. Where the device's table has no draws, `read` fetches logits for the host.
//
// Steps that only decode are padded to a few sizes (`decode_bucket`). The work of each size is
// recorded once (a CUDA graph) and replayed. A recording depends on the size and on the addresses
// of weights, pools and scratch, not on tokens or context. If an address changes, the work is
// recorded again. Pushes fill two sets of panels in turn (weights/shadow_pool.hpp), so each size
// keeps the recordings for its last two sets of addresses: after the first pushes nothing is
// recorded any more.
//
// Owned by a StepRunner, used on the engine's thread. For each step call `begin`, then `batch` for
// ascending head rows (after each batch `read` for the rows that the host needs), then `drawn`.
// Bounds: kDeviceLogits_bytes_max of logits; two recordings per bucket.
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

  // Starts a step and copies its lists to the device. `uniforms` has one number for each job; for a
  // number below 0 the most likely token is drawn.
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
  std::span<const Drawn> drawn();

  // Drops all recordings, before the memory that they point to is freed.
  void forget() { recorded_.clear(); }
  // How many steps were submitted from a recording.
  std::uint64_t replayed() const { return replayed_; }

 private:
  using Places = std::array<const void*, 26>;  // the addresses that a recording uses
  struct Recorded {
    Places places{};
    std::unique_ptr<core::Recording> work;  // null until a second step has the same places
  };
  struct Bucket {
    Recorded latest, before;
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
  std::vector<std::int32_t> rows_;  // by job: its head row, counted from its batch's first
  std::vector<float> inv_temperatures_;
  const double* uniform_at_ = nullptr;
  const std::int32_t* row_at_ = nullptr;
  const float* inv_temperature_at_ = nullptr;
  std::vector<std::int32_t> words_;  // copy of drawn_ on the host
  std::vector<Drawn> results_;
  std::map<std::int64_t, Bucket> recorded_;  // by size
  std::uint64_t replayed_ = 0;
  bool records_ = true;  // false once the team reports that it cannot record
  // The current step.
  const model::PackedWeights* weights_ = nullptr;
  const StepPlan* step_ = nullptr;
  model::KvPool* pool_ = nullptr;
  std::int64_t row_begin_ = 0, row_end_ = 0;  // the current batch
  std::size_t job_begin_ = 0, job_end_ = 0;
};

}  // namespace troupe::engine
