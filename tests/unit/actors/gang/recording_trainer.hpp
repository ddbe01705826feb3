// A policy's trainer that computes nothing, and its publisher: they note what they are asked for.
#pragma once

#include "actors/gang/gang_command.hpp"
#include "runtime/core/check.hpp"
#include "runtime/learn/rl/trainer.hpp"
#include "runtime/weights/weight_channel.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace troupe::actors::testing {

// Shared by test and trainer, on any thread.
class Calls {
 public:
  core::Result<void> note(const std::string& call) {
    const std::lock_guard lock(mutex_);
    made_.push_back(call);
    const auto error = errors_.find(call);
    if (error == errors_.end()) return {};
    return core::fail(error->second);
  }
  void fail_at(const std::string& call, core::Error error) { errors_[call] = std::move(error); }
  std::vector<std::string> made() const {
    const std::lock_guard lock(mutex_);
    return made_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> made_;
  std::map<std::string, core::Error> errors_;
};

class RecordingTrainer final : public learn::PolicyTrainer {
 public:
  explicit RecordingTrainer(Calls& calls) : calls_(calls) {}

  core::Result<learn::ValueTargets> prepare(std::vector<experience::Group> groups) override {
    gang::GangCommand same{gang::GangCall::kPrepare};
    same.groups = std::move(groups);
    const auto bytes = gang::to_bytes(same);
    const std::string text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
    TROUPE_TRY(calls_.note("prepare " + std::to_string(std::hash<std::string>()(text))));
    return learn::ValueTargets{};
  }
  core::Result<learn::UpdateReport> learn() override {
    TROUPE_TRY(calls_.note("learn"));
    learn::UpdateReport report;
    report.version = ++version_;
    return report;
  }
  std::shared_ptr<const model::PackedWeights> packed() override { return nullptr; }
  bool divided() const override { return true; }
  core::Result<void> each_part(const See&) override { return calls_.note("each_part"); }
  const model::ParamStore& master() const override { return master_; }
  const model::ParamStore* average() const override { return nullptr; }
  core::Version version() const override { return version_; }
  core::Result<void> save_model(const std::filesystem::path& folder,
                                const std::filesystem::path& tokenizer) const override {
    return calls_.note("save_model " + folder.string() + " " + tokenizer.string());
  }
  core::Result<void> save_state(const std::filesystem::path& folder) const override {
    return calls_.note("save_state " + folder.string());
  }
  core::Result<void> load_state(const std::filesystem::path& folder) override {
    return calls_.note("load_state " + folder.string());
  }

 private:
  Calls& calls_;
  const model::ParamStore master_{model::ModelSpec{}};  // only passed on
  core::Version version_ = 0;
};

// Publishes nothing: notes that it is asked, and shows the weights to nobody.
class RecordingPublisher final : public weights::WeightPublisher {
 public:
  explicit RecordingPublisher(Calls& calls) : calls_(calls) {}

 private:
  core::Result<weights::WeightLocation> take(const weights::Offer& offer) override {
    TROUPE_TRY(calls_.note("publish " + std::to_string(offer.version)));
    TROUPE_TRY(offer.each_part([](core::Range, const float*) {}));
    return weights::WeightLocation{};
  }
  Calls& calls_;
};

}  // namespace troupe::actors::testing
