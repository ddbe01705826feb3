// A run of `troupe train sft|pretrain|rm|dpo|ipo|cdpo|kto`: one process, one model, optimiser steps
// over rows in a seeded order, evaluations, checkpoints, the model at the end. The run folder is
// that of PPO runs (docs/run_folder.md). Owned by the command; its thread; bounded by one step's
// batch.
#pragma once

#include "apps/session/run_reporter.hpp"
#include "apps/session/supervised_inputs.hpp"
#include "runtime/config/train_config.hpp"
#include "runtime/core/clock.hpp"
#include "runtime/core/result.hpp"
#include "runtime/core/team.hpp"
#include "runtime/learn/supervised/supervised_trainer.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::app {

class SupervisedRun {
 public:
  SupervisedRun(config::TrainConfig config, config::Origins origins);
  ~SupervisedRun();

  core::Result<void> run();

 private:
  core::Result<void> load();   // model, reference and trainer
  core::Result<void> begin();  // run folder, reporter, checkpoint
  core::Result<void> train();
  core::Result<void> step(std::uint64_t done);
  core::Result<void> evaluate(std::uint64_t done);
  core::Result<void> save(std::uint64_t done);
  core::Result<void> save_last(core::Error error);
  // The rows of a step that ended the run, for the user to look at; returns the file's path.
  core::Result<std::string> dump(const std::vector<std::uint64_t>& rows, std::uint64_t done) const;
  void summary();

  const config::TrainConfig config_;
  const config::Origins origins_;
  const core::SteadyClock clock_;
  const core::TimePoint begin_;
  std::unique_ptr<core::TeamRunner> team_;
  SupervisedInputs inputs_;
  std::unique_ptr<learn::SupervisedTrainer> trainer_;
  std::optional<Hashing> contents_;
  std::optional<store::RunStart> start_;
  std::unique_ptr<RunReporter> reporter_;
  double load_s_ = 0;
  std::uint64_t whole_ = 0;   // steps done
  std::uint64_t saved_ = 0;   // of the newest checkpoint
  bool half_way_ = false;     // through the step after them
  bool save_failed_ = false;  // the last try
  std::filesystem::path saved_at_;
};

}  // namespace troupe::app
