// The steps of an engine and weights, scripted and written down, so that order is certain.
#pragma once

#include "runtime/engine/limits.hpp"
#include "runtime/engine/step_computer.hpp"
#include "runtime/weights/weight_channel.hpp"
#include "tests/unit/runtime/engine/tiny_engine.hpp"

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace troupe::actors::testing {

// What the engine and the intakes were asked to do, in order; written on the device thread.
struct EngineLog {
  void add(std::string line) {
    const std::lock_guard lock(mutex);
    lines.push_back(std::move(line));
  }
  std::vector<std::string> all() {
    const std::lock_guard lock(mutex);
    return lines;
  }
  std::size_t count(const std::string& line) {
    const std::lock_guard lock(mutex);
    return static_cast<std::size_t>(std::count(lines.begin(), lines.end(), line));
  }
  std::mutex mutex;
  std::vector<std::string> lines;
};

// A tiny model whose samples need not end before a script says so.
inline constexpr std::int32_t kLongResponse = 50'000;
inline engine::Weights long_weights(core::Version version) {
  model::ModelSpec spec = engine::tiny_spec();
  spec.context = kLongResponse + 1000;
  model::ParamStore params(spec);
  model::randomise(params, version, 0.25f);
  return engine::pack(params, version);
}

// What the steps of an engine compute: every sample draws a token, and its last one when `ends`
// says so. A step takes a millisecond, so that a script can follow.
class ScriptedSteps final : public engine::StepComputer {
 public:
  using Ends = std::function<bool(const engine::GroupRequest&, const engine::Sample&)>;
  static constexpr std::int32_t kToken = 1, kEnd = 2;
  ScriptedSteps(Ends ends, EngineLog& log) : ends_(std::move(ends)), log_(log) {}

  core::Result<std::span<const engine::Draw>> run(const model::PackedWeights& weights,
                                                  engine::StepPlan& step,
                                                  model::KvPool&) override {
    std::unique_lock lock(mutex_);
    never_.wait_for(lock, std::chrono::milliseconds(1));
    note_swap(weights.version(), step);
    log_.add("step");
    draws_.clear();
    for (const engine::DrawJob& job : step.jobs()) {
      const engine::GroupRequest& request = job.group->request;
      if (!job.group->forked && job.sample == 0) {
        log_.add("begin " + std::to_string(request.seed));
      }
      engine::Sample next = job.group->at(job.sample).out;
      next.tokens.push_back(kToken);
      next.versions.push_back(weights.version());
      engine::Draw draw;
      draw.token = ends_(request, next) ? kEnd : kToken;
      draw.logprob = request.seed == 666 ? std::numeric_limits<float>::quiet_NaN() : -1.0f;
      draws_.push_back(draw);
    }
    return std::span<const engine::Draw>(draws_);
  }
  void forget_places() override { log_.add("sleep"); }
  std::uint64_t replayed() const override { return 0; }

 private:
  // How samples under way go on with other weights.
  void note_swap(core::Version version, engine::StepPlan& step) {
    const auto jobs = step.jobs();
    const bool under_way =
        std::any_of(jobs.begin(), jobs.end(), [](const auto& job) { return job.group->forked; });
    if (std::exchange(version_, version) == version || !under_way) return;
    const auto& segments = step.plan().segments;
    const bool again = std::any_of(segments.begin(), segments.end(),
                                   [](const auto& segment) { return segment.rows > 1; });
    log_.add("on with " + std::to_string(version) + (again ? " recompute" : " keep"));
  }

  Ends ends_;
  EngineLog& log_;
  std::mutex mutex_;
  std::condition_variable never_;
  core::Version version_ = 0;
  std::vector<engine::Draw> draws_;
};

// Weights that need some slices to be packed.
inline constexpr int kTakenBack = -2;  // as `slices` of an intake: its memory is taken back

class ScriptedIntake final : public weights::WeightIntake {
 public:
  ScriptedIntake(core::Version version, int slices, EngineLog& log)
      : version_(version), slices_(slices), log_(log) {}
  core::Version version() const override { return version_; }
  bool verified() const override { return true; }
  core::Result<bool> advance(core::TeamRunner&, core::Duration budget) override {
    log_.add(budget <= engine::limits::kWeightSlice ? "slice" : "pack");
    if (slices_ == kTakenBack) return core::fail(core::ErrorCode::kPeerLost, "taken back");
    if (slices_ < 0) return core::fail(core::ErrorCode::kData, "a checksum is wrong");
    return --slices_ <= 0;
  }
  std::shared_ptr<const model::PackedWeights> take() override { return long_weights(version_); }

 private:
  core::Version version_;
  int slices_;
  EngineLog& log_;
};

// Gives what was published last, when it may.
class ScriptedSubscriber final : public weights::WeightSubscriber {
 public:
  explicit ScriptedSubscriber(EngineLog& log) : log_(log) {}

  core::Result<std::unique_ptr<weights::WeightIntake>> fetch(core::Version at_least,
                                                             const weights::WeightLocation&,
                                                             core::Duration) override {
    std::unique_lock lock(mutex_);
    fetched_.push_back(at_least);
    changed_.notify_all();
    const core::Version newest = newest_;  // when it was asked
    changed_.wait(lock, [this] { return open_; });
    if (losses_ > 0) {
      --losses_;
      return core::fail(core::ErrorCode::kPeerLost, "the connection broke");
    }
    if (newest < at_least) return core::fail(core::ErrorCode::kNotFound, "only older ones");
    const bool taken_back = taken_back_ > 0 && taken_back_-- > 0;
    return std::unique_ptr<weights::WeightIntake>(
        std::make_unique<ScriptedIntake>(newest, taken_back ? kTakenBack : slices_, log_));
  }

  void publish(core::Version version, int slices = 1) {
    const std::lock_guard lock(mutex_);
    newest_ = version;
    slices_ = slices;
  }
  // The next fetches lose their connection.
  void lose(int times) {
    const std::lock_guard lock(mutex_);
    losses_ = times;
  }
  // The next intakes lose their memory before they are packed.
  void take_back(int times) {
    const std::lock_guard lock(mutex_);
    taken_back_ = times;
  }
  void open(bool open) {
    const std::lock_guard lock(mutex_);
    open_ = open;
    changed_.notify_all();
  }
  std::vector<core::Version> fetched() {
    const std::lock_guard lock(mutex_);
    return fetched_;
  }

 private:
  EngineLog& log_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = true;
  core::Version newest_ = 0;
  int slices_ = 1;
  int losses_ = 0;
  int taken_back_ = 0;
  std::vector<core::Version> fetched_;
};

}  // namespace troupe::actors::testing
