// The one implementation of Engine: schedule, build the plan in place, run it on the team, commit
// what was drawn. A step whose logits are not finite commits nothing: after the named group is
// aborted the others go on. Made by Engine::create, used on its caller's thread; bounds as in
// EngineSettings.
#pragma once

#include "runtime/engine/engine.hpp"
#include "runtime/engine/engine_settings.hpp"
#include "runtime/engine/scheduler.hpp"
#include "runtime/engine/step_plan.hpp"
#include "runtime/engine/step_runner.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::engine {

class BatchingEngine final : public Engine {
 public:
  BatchingEngine(std::shared_ptr<const model::PackedWeights> weights,
                 const EngineSettings& settings,
                 std::vector<std::int32_t> eos,
                 const TokenText* text,
                 core::TeamRunner& team)
      : spec_(weights->spec()),
        weights_(std::move(weights)),
        settings_(settings),
        eos_(std::move(eos)),
        text_(text),
        members_(team.size()),
        scheduler_(settings.blocks,
                   settings.sequences_max,
                   settings.step_tokens_max,
                   settings.prefix_cache,
                   settings.window),
        plan_(settings.sequences_max,
              settings.step_tokens_max,
              std::int64_t{settings.sequences_max} * blocks_for(settings.context),
              spec_),
        memory_(team.memory()),
        pool_(make_pool()),
        runner_(spec_, settings.sequences_max, settings.step_tokens_max, team) {
    copies_.reserve(static_cast<std::size_t>(settings.sequences_max));
  }

  core::Result<void> submit(GroupRequest request) override;
  std::vector<Sample> abort(core::GroupId group) override;
  core::Result<std::vector<Sample>> step() override;
  std::optional<core::GroupId> broken_group() const override { return broken_; }
  bool idle() const override { return scheduler_.idle(); }
  std::span<const std::int32_t> drawn(core::GroupId group, std::int32_t index) override;
  const Sample* unfinished(core::GroupId group, std::int32_t index) override;
  core::Result<std::vector<Sample>> pause(PauseMode mode) override;
  core::Result<void> resume() override;
  core::Result<MemoryReport> sleep(SleepParts parts) override;
  core::Result<MemoryReport> wake(SleepParts parts) override;
  EngineState state() const override { return state_; }
  core::Result<void> set_weights(std::shared_ptr<const model::PackedWeights> weights,
                                 KvAction action) override;
  const model::PackedWeights& weights() const override;
  const model::ModelSpec& spec() const override { return spec_; }
  EngineCounters counters() const override;

 private:
  model::KvPool make_pool() const;
  // A block that no table holds: on a device, where decode steps are filled up; else -1.
  std::int32_t spare_block() const { return memory_.on_host() ? -1 : settings_.blocks; }
  std::unique_ptr<Group> make_group(GroupRequest request) const;
  core::Result<void> check_finite(std::span<const Draw> draws);
  void commit(std::span<const Slice> slices, std::span<const Draw> draws);
  void append(const DrawJob& job, const Draw& draw);
  void score(const DrawJob& job, const Draw& draw);
  bool finished(const Group& group, SampleState& sample) const;

  core::Result<void> check_awake(std::string_view what) const;
  MemoryReport report_before() const;
  void report_after(MemoryReport& report) const;

  const model::ModelSpec spec_;
  std::shared_ptr<const model::PackedWeights> weights_;  // null while they sleep or are awaited
  EngineState state_;
  const EngineSettings settings_;
  const std::vector<std::int32_t> eos_;  // ascending
  const TokenText* const text_;
  const int members_;
  Scheduler scheduler_;
  StepPlan plan_;
  core::Memory& memory_;  // of the team
  model::KvPool pool_;
  StepRunner runner_;
  std::vector<BlockCopy> copies_;
  std::vector<Sample> finished_;  // of the step in progress
  EngineCounters counters_;
  std::optional<core::GroupId> broken_;  // by the last step
};

}  // namespace troupe::engine
