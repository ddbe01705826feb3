#include "apps/session/run_life.hpp"

#include "actors/company/limits.hpp"
#include "actors/controller/limits.hpp"
#include "actors/data/limits.hpp"
#include "apps/cli/stop_signal.hpp"
#include "apps/cli/system_facts.hpp"
#include "apps/loggers/limits.hpp"
#include "apps/session/company_plane.hpp"
#include "apps/session/core_plan.hpp"
#include "apps/session/loopback_plane.hpp"
#include "apps/session/roles/role_devices.hpp"
#include "apps/session/wanted_roles.hpp"
#include "runtime/core/shell_word.hpp"

#include <algorithm>
#include <cstdio>
#include <thread>

namespace troupe::session {

Result<void> RunLife::run() {
  auto outcome = live();
  if (loggers_) {
    core::TimePoint end = clock_.now() + loggers::limits::kLoggerEnd;
    if (const auto stop = cli::stop_deadline())
      end = std::min(end, *stop - std::chrono::seconds(1));
    loggers_->finish(end);
  }
  // A run whose ports were taken has left nothing to go on from.
  std::error_code ignored;
  if (made_folder_ && never_opened_) std::filesystem::remove_all(config_.run.path, ignored);
  return outcome;
}

Result<void> RunLife::live() {
  room_pause_ = actors::data::limits::kDiskPause_min;
  for (std::uint64_t losses = 0;;) {
    const std::uint64_t done_before = done_;
    auto outcome = run_session();
    if (begun_ && !loopback() && wait_for_room(outcome)) continue;
    if (std::exchange(goes_back_, false)) {
      resume_newest();
      continue;
    }
    if (outcome || outcome.error().code != ErrorCode::kPeerLost || loopback()) return outcome;
    losses = done_ > done_before ? 1 : losses + 1;
    if (losses > actors::company::limits::kRestarts_max) {
      if (const auto shortage = plane_->shortage()) return core::fail(*shortage);
      return outcome;
    }
    note(outcome.error().message + "; going on from the last checkpoint");
    resume_newest();
  }
}

// If a session ended because the disk is full, waits a while, says so the first time, and returns
// true. False when that was not the cause, or when the user asks to stop.
bool RunLife::wait_for_room(const Result<void>& outcome) {
  const bool full = !outcome && outcome.error().code == ErrorCode::kNoRoom;
  if (!full) room_pause_ = actors::data::limits::kDiskPause_min;
  if (!full || cli::stop_requested()) return false;
  if (room_pause_ == actors::data::limits::kDiskPause_min)
    note(outcome.error().message + "; the run continues when there is room");
  const core::TimePoint end = clock_.now() + room_pause_;
  while (clock_.now() < end && !cli::stop_requested())
    std::this_thread::sleep_for(actors::controller::limits::kLookEvery);
  room_pause_ =
      std::min<core::Duration>(2 * room_pause_, actors::controller::limits::kDiskPause_max);
  resume_newest();
  return true;
}

// The next session begins with the newest checkpoint; where a branch has none yet, with the one
// that it branched off from.
void RunLife::resume_newest() {
  const bool named = config_.resume != "auto" && config_.resume != "off";
  const store::CheckpointStore own(std::filesystem::path(config_.run.path) / "ckpt",
                                   config_.ckpt.max_num);
  const auto steps = own.steps();
  if (!named || !steps || !steps->empty()) config_.resume = "auto";
}

void RunLife::note(const std::string& text) {
  const std::lock_guard lock(mutex_);
  if (reporter_ != nullptr) return reporter_->on_note(text);
  std::fprintf(stderr, "%s\n", text.c_str());
}

void RunLife::report_to(RunReporter* reporter) {
  const std::lock_guard lock(mutex_);
  reporter_ = reporter;
}

Result<store::RunStart> RunLife::open_folder() {
  if (!contents_) {
    TROUPE_TRY_ASSIGN(contents, contents_of(config_));
    contents_.emplace(std::move(contents));
    std::error_code error;
    made_folder_ = !std::filesystem::exists(config_.run.path, error) && !error;
  }
  return start_run(config_, origins_, *contents_);
}

void RunLife::resume(const store::RunStart& start,
                     SessionParts& parts,
                     actors::controller::RunPlan& plan) {
  plan.restarts = !loopback();
  plan.failed = failed_;
  if (!start.checkpoint) return;
  parts.checkpoint = start.checkpoint->folder.string();
  plan.first_update = done_ = start.checkpoint->step;
}

Result<std::unique_ptr<RunReporter>> RunLife::open_reporter(const store::RunStart& start,
                                                            std::uint64_t updates,
                                                            const std::vector<std::string>& notes) {
  auto reporter = RunReporter::open(config_, start, updates, clock_, *contents_, notes);
  if (!reporter) return reporter;
  report_to(reporter->get());
  if (!loggers_) {
    loggers_ = std::make_unique<loggers::RunLoggers>(
        loggers::loggers_of(config_, std::filesystem::absolute(start.folder.path())),
        [this](const std::string& text) { note(text); });
  }
  begun_ = true;
  return reporter;
}

Result<void> RunLife::conduct(SessionParts parts,
                              Preloaded preloaded,
                              std::uint64_t updates,
                              const store::RunStart& start,
                              RunReporter& reporter) {
  parts.listener = &reporter;
  parts.roles_up = [&start, &reporter](const std::string& arithmetic) {
    return begin_in(arithmetic, start, reporter);
  };
  parts.check_place = [&start] { return start.folder.check_here(); };
  if (!plane_ && loopback()) {
    if (const std::string gpus = devices_text(config_); !gpus.empty()) note(gpus);
    plane_ = std::make_unique<LoopbackPlane>(config_, updates, std::move(preloaded.params),
                                             std::move(preloaded.reward));
  } else if (!plane_) {
    TROUPE_TRY(open_company(updates, start.folder));
  }
  if (load_s_ == 0) load_s_ = std::chrono::duration<double>(clock_.now() - begin_).count();
  RunSession session(*plane_, std::move(parts));
  return session.run();
}

// An error of another kind, and one time too many, is the run's.
Result<void> RunLife::go_back(const core::Error& error,
                              const store::RunStart& start,
                              RunReporter& reporter,
                              const std::function<Result<void>(std::uint64_t to)>& pass_over) {
  const bool back = config_.train.on_divergence == config::OnDivergence::kBack;
  if (error.code != ErrorCode::kNumeric || !back) return core::fail(error);
  TROUPE_TRY_ASSIGN(kept, reporter.checkpoints());
  const std::uint64_t first = start.checkpoint ? start.checkpoint->step : 0;
  const bool own = start.checkpoint &&
                   start.checkpoint->folder.parent_path() == start.folder.checkpoint_folder();
  std::optional<std::uint64_t> begun;
  if (!own && !reporter.has_saved()) begun = first;
  const auto place = returns_.next(reporter.last_good(), kept, begun);
  if (!place) {
    return core::fail(error.also(place.error().what()).advising(place.error().advice()));
  }
  TROUPE_TRY(pass_over(place->step));
  TROUPE_TRY(reporter.go_back_to(*place, std::string(error.what())));
  if (loopback()) plane_.reset();  // its roles hold what diverged
  goes_back_ = true;
  return core::fail(error);
}

bool RunLife::settle(const Result<void>& ended, RunReporter& reporter) {
  const bool over = ended || ended.error().code == ErrorCode::kInterrupted;
  if (over) plane_.reset();  // dismisses the nodes while a reporter can show it
  report_to(nullptr);
  failed_ = reporter.failed_update();
  return over;
}

Result<void> RunLife::open_company(std::uint64_t updates, const store::RunFolder& folder) {
  CompanyPlaneOptions options;
  options.config = config_;
  options.updates = updates;
  options.run_id = folder.generation().run_id();
  options.generation = folder.generation().number();
  options.run_folder = folder.path();
  options.cores = plan_cores(config_, static_cast<std::uint32_t>(cli::usable_cores()));
  options.ours = [generation = folder.generation()] { return generation.check().has_value(); };
  options.contents = [this] { return contents_->get(); };
  options.note = [this](const std::string& text) { note(text); };
  note(options.cores.text);
  auto opened = CompanyPlane::open(std::move(options));
  never_opened_ = !opened && done_ == 0;
  if (!opened) return opened.failure();
  std::unique_ptr<CompanyPlane> company = std::move(*opened);
  const std::string address = company->address();
  note("join with --join " + address + ", or --join " + core::shell_word(folder.path().string()) +
       " on this machine" + company->status_text());
  plane_ = std::move(company);
  const std::string missing = awaited_kinds(config_);
  if (!missing.empty()) {
    note("waiting for nodes that run " + missing + ": troupe node --join " + address + " --roles " +
         missing);
  }
  return {};
}

}  // namespace troupe::session
