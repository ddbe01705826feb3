// The draws of a step that a device makes with the head: of a token and its log-prob, from the
// model's own logits. What each job needs goes to the device in lists, and ids and log-probs come
// back in one copy. Owned by a DeviceStep.
#pragma once

#include "kernels/ops.hpp"
#include "runtime/core/buffer.hpp"
#include "runtime/core/placed_lists.hpp"
#include "runtime/engine/step_plan.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace troupe::engine {

struct Drawn {
  std::int32_t token = 0;
  float logprob = 0.0f;  // not finite when the row's logits are not
};

class PlainDraws {
 public:
  // Sends the step's lists. `uniforms` has one number for each job; for a number below 0 the most
  // likely token is drawn. `batch_rows`: the head's rows come in batches of as many.
  void begin(const StepPlan& step,
             std::span<const double> uniforms,
             std::int64_t batch_rows,
             core::Memory& memory);
  // Submits those of the jobs `of`, whose batch of head rows is `rows`.
  void draw(const kernels::VocabRows& rows, core::Range of);
  // The token and log-prob of each job; waits for them. Valid until the next step.
  std::span<const Drawn> read();

  // Jobs, padded like the plan.
  std::int64_t size() const { return std::ssize(rows_); }
  // On the device, by head row.
  const float* inv_temperature() const { return inv_temperature_at_; }
  // The addresses on the device that draws use.
  std::array<const void*, 4> places() const {
    return {uniform_at_, row_at_, inv_temperature_at_, drawn_.data()};
  }

 private:
  std::vector<double> uniforms_;
  std::vector<std::int32_t> rows_;  // by job: its head row, counted from its batch's first
  std::vector<float> inv_temperatures_;
  core::PlacedLists placed_;
  const double* uniform_at_ = nullptr;
  const std::int32_t* row_at_ = nullptr;
  const float* inv_temperature_at_ = nullptr;
  core::Buffer<std::int32_t> drawn_;  // tokens of all jobs, then the bits of their log-probs
  std::vector<std::int32_t> words_;   // copy of drawn_ on the host
  std::vector<Drawn> results_;
};

}  // namespace troupe::engine
