// A supervised trainer that computes nothing: it notes what it is asked for.
#pragma once

#include "runtime/core/check.hpp"
#include "runtime/learn/supervised/supervised_trainer.hpp"
#include "tests/unit/actors/gang/recording_trainer.hpp"

#include <string>

namespace troupe::actors::testing {

class NotingTrainer final : public learn::SupervisedTrainer {
 public:
  explicit NotingTrainer(Calls& calls) : calls_(calls) {}

  core::Result<learn::SupervisedStep> step(
      std::span<const troupe::data::SupervisedRow> rows) override {
    TROUPE_TRY(calls_.note("step" + text_of(rows)));
    learn::SupervisedStep step;
    step.version = ++version_;
    step.applied = true;
    step.tokens = static_cast<std::int64_t>(rows.size());
    step.targets = 7;
    step.micro_batches = 2;
    step.metrics.emplace_back("policy/loss", 1.0 / static_cast<double>(version_));
    return step;
  }
  core::Result<learn::SupervisedEvaluation> evaluate(
      std::span<const troupe::data::SupervisedRow> rows) override {
    TROUPE_TRY(calls_.note("evaluate" + text_of(rows)));
    learn::SupervisedEvaluation result;
    result.metrics.emplace_back("eval/loss", 10.0 - static_cast<double>(version_));
    result.score_mean = 0.5, result.score_std = 2;
    return result;
  }
  const model::ParamStore& master() const override { TROUPE_CHECK(false, "not asked for"); }
  core::Version version() const override { return version_; }
  void set_score_scale(double mean, double std) override {
    static_cast<void>(calls_.note("scale " + std::to_string(mean) + " " + std::to_string(std)));
  }
  core::Result<void> save_model(const std::filesystem::path& folder,
                                const std::filesystem::path&) const override {
    return calls_.note("save_model " + folder.string());
  }
  core::Result<void> save_state(const std::filesystem::path& folder) const override {
    return calls_.note("save_state " + folder.string());
  }
  core::Result<void> load_state(const std::filesystem::path& folder) override {
    return calls_.note("load_state " + folder.string());
  }

 private:
  // Ids, and a digit of each row's first token.
  static std::string text_of(std::span<const troupe::data::SupervisedRow> rows) {
    std::string text;
    for (const troupe::data::SupervisedRow& row : rows)
      text += " " + std::to_string(row.id) + ":" + std::to_string(row.answer.front()) +
              (row.learn.empty() ? "" : "l" + std::to_string(row.learn.size()));
    return text;
  }

  Calls& calls_;
  core::Version version_ = 0;
};

}  // namespace troupe::actors::testing
