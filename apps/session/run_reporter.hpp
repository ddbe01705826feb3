// Reports a run's progress to metrics.jsonl (the authoritative record), TensorBoard, troupe.log and
// the terminal, and hands out its checkpoints. It is the controller's listener; callable on any
// thread, because the company reports through it, too. A checkpoint is hashed on a thread of its
// own. Owned by the `train` command, which reads the totals after the run.
#pragma once

#include "actors/controller/run_listener.hpp"
#include "apps/session/headway.hpp"
#include "apps/session/returns.hpp"
#include "apps/session/run_checkpoints.hpp"
#include "apps/session/run_display.hpp"
#include "apps/session/run_output.hpp"
#include "apps/session/silence_watch.hpp"
#include "apps/session/truth_alarm.hpp"
#include "runtime/async/device_thread.hpp"
#include "runtime/config/train_config.hpp"
#include "runtime/core/clock.hpp"
#include "runtime/observe/best_metric.hpp"
#include "runtime/observe/metric_row.hpp"
#include "runtime/store/run_start.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace troupe::session {

class RunReporter final : public actors::controller::RunListener {
 public:
  // Opens the files and prints the notes of `start`, then `notes`. `updates`: of the whole run.
  // Every checkpoint's manifest gets the hashes of `contents`. `start` and `contents` outlive this
  // object.
  static core::Result<std::unique_ptr<RunReporter>> open(const config::TrainConfig& config,
                                                         const store::RunStart& start,
                                                         std::uint64_t updates,
                                                         const core::Clock& clock,
                                                         const Hashing& contents,
                                                         const std::vector<std::string>& notes);

  void on_phase(const std::string& phase) override;
  void on_failed_group(const actors::controller::FailedGroup& group) override;
  void on_peer(const std::string& name, bool up, const std::string& cause) override;
  // Prints a line above the progress display and writes it to troupe.log.
  void on_note(const std::string& text) override;
  void on_failed_update(const actors::controller::FailedUpdate& failed) override;
  void on_rewards(const actors::SetRewards& set) override;
  void on_awaited_rewards(const std::set<std::string>& names) override;
  void on_groups(const actors::GroupCounts& counts) override;
  core::Result<void> on_update(const actors::controller::UpdateReport& report) override;
  core::Result<void> on_evaluation(const actors::controller::EvaluationReport& report) override;
  // A row of metrics of its own, and a line for the user.
  core::Result<void> on_figures(std::uint64_t done,
                                const actors::controller::Metrics& figures,
                                const std::string& line) override;
  core::Result<std::filesystem::path> begin_checkpoint(std::uint64_t done) override;
  async::task<core::Result<std::filesystem::path>> commit_checkpoint(std::uint64_t done) override;
  std::string on_diverged(std::uint64_t updates) override;
  bool is_best(std::uint64_t done) const override;
  bool log_is_long(std::uint64_t done) override;
  core::Result<void> check_place() const override { return folder_.check_here(); }
  bool stop_requested() const override;
  // A little before SIGTERM's limit, so that the roles can be stopped.
  std::optional<core::TimePoint> stop_deadline() const override;
  // Ends the process.
  void on_given_up(const std::string& said) override;

  // The files that `who` has loaded (LoadedModules::take): says which of them have changed.
  void on_modules(const std::string& who, const std::string& modules);

  // The reward sets passed to on_rewards, by number.
  std::map<std::uint64_t, actors::SetRewards> reward_sets() const;

  // The last update that failed, for the next session's plan.
  actors::controller::FailedUpdate failed_update() const;

  // The class of arithmetic that every checkpoint's manifest gets from now on.
  void computes_in(std::string arithmetic);

  // Updates done, counted from the run's beginning.
  std::uint64_t done() const;
  // Headway::last_good.
  std::optional<std::uint64_t> last_good() const;
  // The steps that have a checkpoint, ascending; whether this object has made one.
  core::Result<std::vector<std::uint64_t>> checkpoints() const;
  bool has_saved() const;
  // Says that the run goes back there, and why, and gives newer checkpoints other names.
  core::Result<void> go_back_to(const Returns::Place& place, const std::string& cause);
  // Ends the current phase; returns the seconds of each phase in order of first appearance.
  std::vector<std::pair<std::string, double>> phases();

 private:
  RunReporter(RunOutput output,
              const config::TrainConfig& config,
              const store::RunStart& start,
              std::uint64_t updates,
              const core::Clock& clock,
              const Hashing& contents);
  core::Result<std::filesystem::path> commit_here(std::uint64_t done);
  core::Result<void> record(const observe::MetricRow& row);
  core::Result<actors::controller::Metrics> sampled_figures(
      const actors::controller::EvaluationReport& report, std::vector<std::string>& alarms);
  void say(const std::string& text);

  const config::TrainConfig config_;
  const store::RunFolder& folder_;
  std::string last_gist_;     // of the last failed group's cause; on the controller's strand
  mutable std::mutex mutex_;  // protects the members below
  RunOutput output_;
  RunCheckpoints checkpoints_;
  observe::BestMetric best_;
  TruthAlarm truth_;
  SilenceWatch silence_;
  Headway headway_;
  actors::controller::FailedUpdate failed_;
  RunDisplay display_;
  std::map<std::uint64_t, actors::SetRewards> reward_sets_;
  async::DeviceThread hashing_{"checkpoint"};  // last, so that its job ends before the rest
};

// Compares the class of arithmetic of a run that begins with that of its checkpoint
// (check_arithmetic) and hands it to the reporter.
core::Result<void> begin_in(const std::string& arithmetic,
                            const store::RunStart& start,
                            RunReporter& reporter);

}  // namespace troupe::session
