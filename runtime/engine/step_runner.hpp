// The numeric part of a step, as one parallel region: the model's layers over the plan's rows, then
// head and draws in batches of head rows, so that the logits of a large step stay within a
// cache-sized buffer. Owned by the engine; `run` is called on its thread and returns when the team
// is done. Bounds: kHeadRows_max head rows and kLogits_bytes_max of logits at a time.
#pragma once

#include "runtime/core/buffer.hpp"
#include "runtime/core/team.hpp"
#include "runtime/engine/sampler.hpp"
#include "runtime/engine/step_plan.hpp"
#include "runtime/model/forward.hpp"

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace troupe::engine {

inline constexpr std::int64_t kHeadRows_max = 64;
inline constexpr std::int64_t kHeadRows_min = 8;
inline constexpr std::int64_t kLogits_bytes_max = 32 << 20;

class StepRunner {
 public:
  StepRunner(const model::ModelSpec& spec, std::int32_t sequences_max, core::TeamRunner& team);

  // Keys and values go to `pool`; returns the draw of each job of `step`, good until the next call.
  // The log-prob of a draw is not finite when its logits are not.
  std::span<const Draw> run(const model::PackedWeights& weights,
                            const StepPlan& step,
                            model::KvPool& pool);

 private:
  void member(core::Team team);
  void place_alternatives();
  bool wants_routed() const;
  std::span<const std::uint16_t> routed(const DrawJob& job) const;
  void draw_rows(core::Team team, std::int64_t row_begin, std::int64_t row_end);
  Draw draw(Sampler& sampler, std::size_t job, std::int64_t row_begin);

  core::TeamRunner& team_;
  const std::int64_t vocab_;
  const std::int64_t blocks_;  // of the vocabulary
  const std::int64_t ldl_;
  const std::int64_t head_rows_;
  std::function<void(core::Team)> region_;
  std::vector<Sampler> samplers_;  // by rank
  model::ForwardScratch scratch_;
  core::Buffer<float> logits_;     // [head_rows, ldl]
  core::Buffer<float> block_max_;  // [head_rows, blocks]
  core::Buffer<float> block_sum_;
  std::vector<Draw> draws_;             // by job
  std::vector<std::size_t> top_begin_;  // [jobs + 1]: where each job's entries of `top_` begin
  std::vector<TokenLogprob> top_;
  // Arguments of the running region.
  const model::PackedWeights* weights_ = nullptr;
  const StepPlan* step_ = nullptr;
  model::KvPool* pool_ = nullptr;
};

}  // namespace troupe::engine
