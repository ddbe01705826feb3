// Tells people and files what a run does: metrics.jsonl (the truth), TensorBoard, the terminal, the
// checkpoints and the time spent by phase. The controller's listener; safe on any thread, because
// the company has things to say too. Owned by the command that trains, which reads the totals after
// the run.
#pragma once

#include "actors/controller/run_listener.hpp"
#include "runtime/core/clock.hpp"
#include "runtime/core/train_config.hpp"
#include "runtime/observe/best_metric.hpp"
#include "runtime/observe/log.hpp"
#include "runtime/observe/metrics_writer.hpp"
#include "runtime/observe/phase_timer.hpp"
#include "runtime/observe/progress.hpp"
#include "runtime/observe/tensorboard_writer.hpp"
#include "runtime/store/atomic_folder.hpp"
#include "runtime/store/checkpoint_store.hpp"
#include "runtime/store/run_folder.hpp"

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe::app {

class RunReporter final : public actors::RunListener {
 public:
  // `first`: updates that a resumed run has behind it.
  static core::Result<std::unique_ptr<RunReporter>> open(const core::TrainConfig& config,
                                                         const store::RunFolder& folder,
                                                         std::uint64_t first,
                                                         std::uint64_t updates,
                                                         const core::Clock& clock);

  void on_phase(const std::string& phase) override;
  void on_failed_group(std::uint64_t update, std::uint32_t slot, const std::string& cause) override;
  void on_peer(const std::string& name, bool up, const std::string& cause) override;
  void on_rewards(std::uint64_t set,
                  std::uint64_t from_update,
                  const std::vector<actors::RewardMember>& members) override;
  core::Result<void> on_update(const actors::UpdateReport& report) override;
  core::Result<void> on_evaluation(const actors::EvaluationReport& report) override;
  core::Result<std::filesystem::path> begin_checkpoint(std::uint64_t done) override;
  core::Result<void> commit_checkpoint(std::uint64_t done) override;
  bool is_best(std::uint64_t done) const override;
  bool stop_requested() const override;

  // What was measured after `done` updates besides the update itself; `line` says it to the user.
  core::Result<void> on_figures(std::uint64_t done,
                                const actors::Metrics& figures,
                                const std::string& line);

  // A line above the progress, kept in troupe.log too.
  void note(const std::string& text);
  // Ends the phase that runs; seconds by phase in the order of their first appearance.
  std::vector<std::pair<std::string, double>> phases();

 private:
  struct Files {
    observe::Log log;
    observe::MetricsWriter metrics;
    std::optional<observe::TensorboardWriter> tensorboard;
    store::CheckpointStore checkpoints;
  };

  RunReporter(Files files,
              const core::TrainConfig& config,
              const store::RunFolder& folder,
              std::uint64_t first,
              std::uint64_t updates,
              const core::Clock& clock);
  core::Result<void> record(const observe::MetricRow& row);
  core::Result<actors::Metrics> sampled_figures(const actors::EvaluationReport& report) const;
  void say(const std::string& text);

  const core::TrainConfig config_;
  const std::filesystem::path eval_folder_;
  mutable std::mutex mutex_;  // of everything below
  Files files_;
  std::optional<store::AtomicFolder> open_checkpoint_;
  observe::BestMetric best_;
  observe::PhaseTimer timer_;
  observe::Progress progress_;
};

}  // namespace troupe::app
