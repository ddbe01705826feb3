// Computes the steps of an engine. On the CPU a step is one parallel region: the model's layers
// over the plan's rows, then head and draws in batches of head rows, which bound the logits in
// memory. On a GPU (device_step.hpp, device_sampler.hpp) the device also draws, with the same bits.
// For a device whose table has no draws, and for samples with a guide or that report their kept
// mass, logits are copied to the host and drawn from here.
// Owned by the engine; `run` is called on its thread and returns when the step is done. Bounds in
// host memory: kHeadRows_max head rows and, beyond kHeadRows_min rows, kLogits_bytes_max of logits.
#pragma once

#include "runtime/core/team.hpp"
#include "runtime/engine/device_sampler.hpp"
#include "runtime/engine/device_step.hpp"
#include "runtime/engine/step_computer.hpp"
#include "runtime/model/forward.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace troupe::engine {

inline constexpr std::int64_t kHeadRows_max = 64;
inline constexpr std::int64_t kHeadRows_min = 8;
inline constexpr std::int64_t kLogits_bytes_max = 32 << 20;

class StepRunner final : public StepComputer {
 public:
  StepRunner(const model::ModelSpec& spec,
             std::int32_t sequences_max,
             std::int32_t step_tokens_max,
             core::TeamRunner& team);

  core::Result<std::span<const Draw>> run(const model::PackedWeights& weights,
                                          StepPlan& step,
                                          model::KvPool& pool) override;
  void forget_places() override {
    if (device_) device_->forget();
  }
  std::uint64_t replayed() const override { return device_ ? device_->replayed() : 0; }

 private:
  void member(core::Team team);
  void run_on_device();
  bool draws_plainly(const DrawJob& job) const;
  static bool draws_on_host(const DrawJob& job);
  void draw_some_here(std::int64_t row_begin, std::int64_t row_end);
  double uniform_of(const DrawJob& job) const;
  void draw_here(std::int64_t row_begin, std::int64_t row_end);
  void place_alternatives();
  bool wants_routed() const;
  std::span<const std::uint16_t> routed(const DrawJob& job) const;
  void draw_rows(core::Team team, std::int64_t row_begin, std::int64_t row_end);
  Draw draw(Sampler& sampler, std::size_t job, std::int64_t row_begin);

  core::TeamRunner& team_;
  const std::unique_ptr<DeviceStep> device_;  // null on the CPU
  HeadRows head_;                             // one row if a device draws
  std::function<void(core::Team)> region_;
  std::unique_ptr<DeviceSampler> device_sampler_;  // null where the host draws
  std::vector<Sampler> samplers_;                  // by team member
  model::ForwardScratch scratch_;
  std::vector<double> uniforms_;                    // by job, for the device
  std::vector<Draw> draws_;                         // by job
  std::vector<std::pair<std::size_t, Draw>> here_;  // draws of the host, where a device draws
  std::vector<std::size_t> top_begin_;  // [jobs + 1]: where each job's entries of `top_` begin
  std::vector<TokenLogprob> top_;
  // Arguments of the running region.
  const model::PackedWeights* weights_ = nullptr;
  StepPlan* step_ = nullptr;
  model::KvPool* pool_ = nullptr;
};

}  // namespace troupe::engine
