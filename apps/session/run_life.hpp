// The life of a run: session after session until an outcome. When policy or critic is lost, or a
// session ends because the disk is full, the next one resumes from the last checkpoint. Keeps what
// outlives a session: the control plane and the hashes of the run's files. A run of one method
// derives from it. Owned by the `train` command, whose thread `run` blocks.
#pragma once

#include "actors/reward/reward_calls.hpp"
#include "apps/loggers/run_loggers.hpp"
#include "apps/session/control_plane.hpp"
#include "apps/session/returns.hpp"
#include "apps/session/roles/contents.hpp"
#include "apps/session/run_reporter.hpp"
#include "apps/session/run_session.hpp"
#include "runtime/config/builder.hpp"
#include "runtime/core/clock.hpp"
#include "runtime/model/params.hpp"
#include "runtime/store/run_start.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace troupe::session {

class RunLife {
 public:
  RunLife(config::TrainConfig config, config::Origins origins)
      : config_(std::move(config)),
        origins_(std::move(origins)),
        begin_(clock_.now()),
        returns_(config_.method == config::kPpo ? "update" : "step") {}
  virtual ~RunLife() = default;

  // Trains from the model or the last checkpoint to the end.
  core::Result<void> run();

 protected:
  // What roles of this process are given. Both may be null.
  struct Preloaded {
    std::unique_ptr<model::ParamStore> params;
    std::unique_ptr<actors::reward::RewardCalls> reward;
  };

  // One session, from the last checkpoint to an outcome.
  virtual core::Result<void> run_session() = 0;

  bool loopback() const { return config_.cluster.transport == config::Transport::kLoopback; }
  // Opens the run folder at its newest checkpoint.
  core::Result<store::RunStart> open_folder();
  // The plan's part that all methods have. `done_` is set.
  void resume(const store::RunStart& start, SessionParts& parts, actors::controller::RunPlan& plan);
  // Opens the reporter; notes go to it from now on.
  core::Result<std::unique_ptr<RunReporter>> open_reporter(const store::RunStart& start,
                                                           std::uint64_t updates,
                                                           const std::vector<std::string>& notes);
  // Runs a session of these parts, whose callbacks about the run folder it sets. Both outlive it.
  core::Result<void> conduct(SessionParts parts,
                             Preloaded preloaded,
                             std::uint64_t updates,
                             const store::RunStart& start,
                             RunReporter& reporter);
  // train.on_divergence back, of a session that ended with `error`: the next one begins with an
  // earlier checkpoint. `pass_over` sees to it that its data are others than those that led here;
  // with the same ones the run would repeat itself to the bit. It gets the step that the run goes
  // back to. Gives the error that the session ends with; one of another kind is given as it is.
  core::Result<void> go_back(const core::Error& error,
                             const store::RunStart& start,
                             RunReporter& reporter,
                             const std::function<core::Result<void>(std::uint64_t to)>& pass_over);
  // Ends a session: true when the run is over, and its summary is to be printed.
  bool settle(const core::Result<void>& ended, RunReporter& reporter);

  // Shows a note of the company through the current reporter; between two sessions on standard
  // error. Any thread.
  void note(const std::string& text);

  config::TrainConfig config_;
  const config::Origins origins_;
  const core::SteadyClock clock_;
  double load_s_ = 0;
  std::uint64_t done_ = 0;  // updates in the checkpoint that the last session began with
  bool begun_ = false;      // a session has begun
  std::optional<Hashing> contents_;
  std::unique_ptr<ControlPlane> plane_;

 private:
  core::Result<void> live();
  bool wait_for_room(const core::Result<void>& outcome);
  void resume_newest();
  void report_to(RunReporter* reporter);
  core::Result<void> open_company(std::uint64_t updates, const store::RunFolder& folder);

  const core::TimePoint begin_;
  core::Duration room_pause_;
  bool made_folder_ = false;   // there was no run folder before
  bool never_opened_ = false;  // the company could not be opened, and nothing was done before
  actors::controller::FailedUpdate failed_;  // of the last session
  Returns returns_;
  bool goes_back_ = false;  // the next session begins with the checkpoint of the last return
  std::mutex mutex_;        // protects the one below
  RunReporter* reporter_ = nullptr;
  std::unique_ptr<loggers::RunLoggers> loggers_;  // last, because it writes notes
};

}  // namespace troupe::session
