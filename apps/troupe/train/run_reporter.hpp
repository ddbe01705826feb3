// Tells people and files what a run does: metrics.jsonl (the truth), the terminal, the checkpoints and
// the time spent by phase. The controller's listener; used on its strand. Owned by the command that
// trains, which reads the totals after the run.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/controller/run_listener.hpp"
#include "runtime/core/clock.hpp"
#include "runtime/core/train_config.hpp"
#include "runtime/store/append_file.hpp"
#include "runtime/store/atomic_folder.hpp"
#include "runtime/store/checkpoint_store.hpp"
#include "runtime/store/run_folder.hpp"

namespace troupe::app {

class RunReporter final : public actors::RunListener {
 public:
  static core::Result<std::unique_ptr<RunReporter>> open(const core::TrainConfig& config,
                                                         const store::RunFolder& folder,
                                                         std::uint64_t updates,
                                                         const core::Clock& clock);

  void on_phase(const std::string& phase) override;
  core::Result<void> on_update(const actors::UpdateReport& report) override;
  core::Result<void> on_evaluation(const actors::EvaluationReport& report) override;
  core::Result<std::filesystem::path> begin_checkpoint(std::uint64_t done) override;
  core::Result<void> commit_checkpoint(std::uint64_t done) override;
  bool stop_requested() const override;

  // Ends the phase that runs. Seconds by phase, in the order of their first appearance.
  const std::vector<std::pair<std::string, double>>& phases();

 private:
  RunReporter(store::AppendFile metrics, store::CheckpointStore checkpoints, std::uint64_t updates,
              const core::Clock& clock)
      : metrics_(std::move(metrics)),
        checkpoints_(std::move(checkpoints)),
        updates_(updates),
        clock_(clock),
        phase_begin_(clock.now()) {}

  void end_phase();

  store::AppendFile metrics_;
  store::CheckpointStore checkpoints_;
  std::optional<store::AtomicFolder> open_checkpoint_;
  std::uint64_t updates_;
  const core::Clock& clock_;
  std::string phase_;
  core::TimePoint phase_begin_;
  std::vector<std::pair<std::string, double>> phases_;
};

}  // namespace troupe::app
