// An engine and weights whose every move is scripted and written down, so that order is certain.
#pragma once

#include "runtime/engine/limits.hpp"
#include "runtime/weights/weight_channel.hpp"
#include "tests/unit/runtime/engine/tiny_engine.hpp"

#include <algorithm>
#include <condition_variable>
#include <functional>
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

// One token a sample and step. A sample ends when `ends` says so.
class ScriptedEngine final : public engine::Engine {
 public:
  using Ends = std::function<bool(const engine::GroupRequest&, const engine::Sample&)>;
  ScriptedEngine(engine::Weights weights, Ends ends, EngineLog& log)
      : weights_(std::move(weights)), ends_(std::move(ends)), log_(log) {
    log_.add("made with " + std::to_string(weights_->version()));
  }

  core::Result<void> submit(engine::GroupRequest request) override {
    if (request.prompt.empty()) return core::fail(core::ErrorCode::kData, "an empty prompt");
    if (!state_.awake()) return core::fail(core::ErrorCode::kClosed, "the engine sleeps");
    log_.add("submit " + std::to_string(request.seed));
    for (std::int32_t i = 0; i < request.samples; ++i) {
      engine::Sample sample;
      sample.group = request.id;
      sample.index = i;
      running_.emplace_back(request, sample);
    }
    return {};
  }
  std::vector<engine::Sample> abort(core::GroupId group) override {
    log_.add("abort");
    std::erase_if(running_, [group](const auto& one) { return one.second.group == group; });
    return {};
  }
  core::Result<std::vector<engine::Sample>> step() override {
    log_.add("step");
    std::vector<engine::Sample> finished;
    broken_.reset();
    for (auto& [request, sample] : running_) {
      if (request.seed == 666) {
        broken_ = request.id;
        return core::fail(core::ErrorCode::kNumeric, "logits are not finite");
      }
      sample.tokens.push_back(1);
      sample.logprobs.push_back(-1.0f);
      sample.versions.push_back(weights_->version());
      if (ends_(request, sample)) finished.push_back(sample);
    }
    for (const auto& done : finished) {
      std::erase_if(running_, [&done](const auto& one) {
        return one.second.group == done.group && one.second.index == done.index;
      });
    }
    return finished;
  }
  std::optional<core::GroupId> broken_group() const override { return broken_; }
  bool idle() const override { return running_.empty(); }
  std::span<const std::int32_t> drawn(core::GroupId, std::int32_t) override { return {}; }
  const engine::Sample* unfinished(core::GroupId, std::int32_t) override { return nullptr; }
  core::Result<std::vector<engine::Sample>> pause(engine::PauseMode) override {
    return std::vector<engine::Sample>();
  }
  core::Result<void> resume() override { return {}; }
  core::Result<engine::MemoryReport> sleep(engine::SleepParts parts) override {
    log_.add("sleep");
    state_.kv_asleep = parts.kv;
    return engine::MemoryReport();
  }
  core::Result<engine::MemoryReport> wake(engine::SleepParts) override {
    log_.add("wake");
    state_.kv_asleep = false;
    return engine::MemoryReport();
  }
  engine::EngineState state() const override { return state_; }
  core::Result<void> set_weights(engine::Weights weights, engine::KvAction action) override {
    log_.add("swap to " + std::to_string(weights->version()) +
             (action == engine::KvAction::kKeep ? " keep" : " recompute"));
    weights_ = std::move(weights);
    return {};
  }
  const model::ModelSpec& spec() const override { return weights_->spec(); }
  const model::PackedWeights& weights() const override { return *weights_; }
  engine::EngineCounters counters() const override { return {}; }

 private:
  engine::Weights weights_;
  engine::EngineState state_;
  Ends ends_;
  EngineLog& log_;
  std::optional<core::GroupId> broken_;
  std::vector<std::pair<engine::GroupRequest, engine::Sample>> running_;
};

// Weights that need some slices to be packed.
class ScriptedIntake final : public weights::WeightIntake {
 public:
  ScriptedIntake(core::Version version, int slices, EngineLog& log)
      : version_(version), slices_(slices), log_(log) {}
  core::Version version() const override { return version_; }
  bool verified() const override { return true; }
  core::Result<bool> advance(core::TeamRunner&, core::Duration budget) override {
    log_.add(budget <= engine::limits::kWeightSlice ? "slice" : "pack");
    if (slices_ < 0) return core::fail(core::ErrorCode::kData, "a checksum is wrong");
    return --slices_ <= 0;
  }
  std::shared_ptr<const model::PackedWeights> take() override {
    return engine::tiny_weights(version_, version_);
  }

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
    return std::unique_ptr<weights::WeightIntake>(
        std::make_unique<ScriptedIntake>(newest, slices_, log_));
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
  std::vector<core::Version> fetched_;
};

}  // namespace troupe::actors::testing
