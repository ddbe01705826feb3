#include "apps/session/run_reporter.hpp"

#include "apps/cli/stop_signal.hpp"
#include "apps/session/activity_words.hpp"
#include "apps/session/eval_figures.hpp"
#include "apps/session/limits.hpp"
#include "runtime/config/eval_sets.hpp"
#include "runtime/core/foreign_text.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <numeric>
#include <utility>

namespace troupe::app {
namespace {

constexpr std::chrono::seconds kTick{1};

double unix_seconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

// "held-out after 4 updates: greedy 0.500 on 10 problems, 2 more without a score (1.0 s)"
std::string held_out_line(const actors::EvaluationReport& report, const actors::EvaluatedSet& set) {
  const std::size_t scored = set.accuracy.size();
  char figure[32] = "nothing", line[240];
  if (scored > 0) std::snprintf(figure, sizeof figure, "%.3f", mean_of(set.accuracy));
  const std::string missing =
      set.missing == 0 ? "" : ", " + std::to_string(set.missing) + " more without a score";
  std::snprintf(
      line, sizeof line, "held-out%s%s after %llu updates: %s %s on %zu problems%s (%.1f s)",
      set.name.empty() ? "" : " ", set.name.c_str(), static_cast<unsigned long long>(report.done),
      report.greedy ? "greedy" : "sampled", figure, scored, missing.c_str(), report.seconds);
  return line;
}

std::uint64_t updates_in(const store::RunStart& start) {
  return start.checkpoint ? start.checkpoint->step : 0;
}

}  // namespace

core::Result<std::unique_ptr<RunReporter>> RunReporter::open(
    const config::TrainConfig& config,
    const store::RunStart& start,
    std::uint64_t updates,
    const core::Clock& clock,
    const Hashing& contents,
    const std::vector<std::string>& notes) {
  const store::RunFolder& folder = start.folder;
  std::optional<std::uint64_t> resumed_at;
  if (updates_in(start) > 0) resumed_at = updates_in(start);
  TROUPE_TRY_ASSIGN(output, RunOutput::open(config, folder, resumed_at));
  Files files{std::move(output),
              store::CheckpointStore(folder.checkpoint_folder(), config.ckpt.max_num)};
  if (resumed_at && start.checkpoint->folder.parent_path() == folder.checkpoint_folder())
    files.output.checkpoint_is(start.checkpoint->folder);
  std::unique_ptr<RunReporter> made(
      new RunReporter(std::move(files), config, start, updates, clock, contents));
  made->best_.read(folder.metrics_file());
  made->truth_.restore(folder);
  made->silence_.restore(folder);
  if (const auto& best = made->best_.best()) made->files_.checkpoints.keep_also(best->step);
  for (const auto* said : {&start.notes, &notes})
    for (const std::string& note : *said)
      made->on_note(note);
  return made;
}

RunReporter::RunReporter(Files files,
                         const config::TrainConfig& config,
                         const store::RunStart& start,
                         std::uint64_t updates,
                         const core::Clock& clock,
                         const Hashing& contents)
    : config_(config),
      folder_(start.folder),
      contents_(contents),
      files_(std::move(files)),
      best_(config.ckpt.best_metric_key),
      modules_(start.checkpoint ? hashes_of_json(start.checkpoint->state_json) : Hashes()),
      silence_(samples_of_update(config)),
      done_(updates_in(start)),
      logged_(done_),
      begins_at_(start.first),
      timer_(clock),
      progress_(stdout, observe::detect_style(config.log.format, stdout), clock, done_, updates) {
  if (progress_.live()) ticker_ = std::jthread([this](std::stop_token stop) { tick(stop); });
}

void RunReporter::tick(std::stop_token stop) {
  std::mutex mutex;
  std::condition_variable_any ended;
  std::unique_lock lock(mutex);
  while (!ended.wait_for(lock, stop, kTick, [] { return false; }) && !stop.stop_requested())
    progress_.redraw();
}

void RunReporter::on_note(const std::string& text) {
  const std::lock_guard lock(mutex_);
  say(text);
}

void RunReporter::on_modules(const std::string& who, const std::string& modules) {
  const std::lock_guard lock(mutex_);
  for (const std::string& changed : modules_.take(who, modules))
    say(changed);
}

void RunReporter::on_failed_update(const actors::FailedUpdate& failed) {
  const std::lock_guard lock(mutex_);
  failed_ = failed;
}

actors::FailedUpdate RunReporter::failed_update() const {
  const std::lock_guard lock(mutex_);
  return failed_;
}

void RunReporter::say(const std::string& text) {
  files_.output.log(text);
  progress_.note(core::barred(text));
}

void RunReporter::on_phase(const std::string& phase) {
  const std::lock_guard lock(mutex_);
  timer_.begin(phase);
  progress_.activity(activity_words(phase));
}

void RunReporter::on_groups(const actors::GroupCounts& counts) {
  const std::lock_guard lock(mutex_);
  const std::string phase = timer_.current();
  if (phase != "generate" && phase != "score") return;
  // While all samples are there, it is the scores that training waits for.
  const std::string_view awaited = awaited_phase(counts);
  if (phase != awaited) timer_.begin(awaited);
  progress_.activity(activity_words(counts));
}

void RunReporter::computes_in(std::string arithmetic) {
  const std::lock_guard lock(mutex_);
  arithmetic_ = std::move(arithmetic);
}

std::uint64_t RunReporter::done() const {
  const std::lock_guard lock(mutex_);
  return done_;
}

std::vector<std::pair<std::string, double>> RunReporter::phases() {
  const std::lock_guard lock(mutex_);
  timer_.end();
  return timer_.totals();
}

core::Result<void> RunReporter::record(const observe::MetricRow& row) {
  const auto told = [this](const std::string& text) { say(text); };
  TROUPE_TRY(files_.output.look_after_files(told));
  TROUPE_TRY(files_.output.write(row, told));
  if (!best_.offer(row)) return {};
  files_.checkpoints.keep_also(row.step);
  char line[160];
  std::snprintf(line, sizeof line, "best %s so far: %.4f after %llu", best_.name().c_str(),
                best_.best()->value, static_cast<unsigned long long>(row.step));
  say(line);
  return {};
}

std::string RunReporter::on_diverged(std::uint64_t updates) {
  const std::lock_guard lock(mutex_);
  if (const auto aside = files_.checkpoints.set_aside_from(updates); !aside)
    say(aside.error().message);
  const auto steps = files_.checkpoints.steps();
  if (!steps || steps->empty()) return {};
  return files_.checkpoints.folder_of(steps->back()).string();
}

bool RunReporter::is_best(std::uint64_t done) const {
  const std::lock_guard lock(mutex_);
  return done > 0 && best_.best() && best_.best()->step == done;
}

// Shows a traceback in full once; while the next failures repeat it, shows only its last line.
void RunReporter::on_failed_group(const actors::FailedGroup& group) {
  const std::string gist = core::gist_of(group.cause);
  std::string told = group.cause;
  if (gist != group.cause && gist == last_gist_) {
    told = "again (" + std::to_string(group.fault) + " of " + std::to_string(group.faults_max) +
           "): " + gist;
  }
  last_gist_ = gist;
  on_note("update " + std::to_string(group.ticket.update + 1) + ", prompt " +
          std::to_string(group.ticket.slot + 1) + " replaced: " + told);
}

// Writes to the log alone: the company's own notes tell the user which roles come and go.
void RunReporter::on_peer(const std::string& name, bool up, const std::string& cause) {
  const std::lock_guard lock(mutex_);
  files_.output.log(name + (up ? " is up" : ": " + cause));
}

void RunReporter::on_rewards(const actors::SetRewards& set) {
  std::string text = "reward set " + std::to_string(set.set) + " from update " +
                     std::to_string(set.from_update + 1) + " on:";
  for (const actors::RewardMember& member : set.members) {
    char weight[32];
    std::snprintf(weight, sizeof weight, " x %g", member.weight);
    text += " " + member.name + weight;
  }
  if (!set.formula.empty()) text += "; formula " + set.formula;
  on_note(text);
  const std::lock_guard lock(mutex_);
  reward_sets_.try_emplace(set.set, set);
}

std::map<std::uint64_t, actors::SetRewards> RunReporter::reward_sets() const {
  const std::lock_guard lock(mutex_);
  return reward_sets_;
}

void RunReporter::on_awaited_rewards(const std::set<std::string>& names) {
  const std::string join = " --join " + folder_.path().string() + " --name ";
  for (const std::string& name : names) {
    on_note("waiting for reward " + name +
            ", which was attached to this run: `troupe attach reward" + join + name +
            " ...` as before brings it back, `troupe detach reward" + join + name +
            "` goes on without it");
  }
}

core::Result<void> RunReporter::on_update(const actors::UpdateReport& report) {
  const std::lock_guard lock(mutex_);
  const observe::MetricRow row{report.done, unix_seconds(), report.metrics};
  TROUPE_TRY(record(row));
  for (const auto& [name, value] : report.metrics)
    if (name == "reward/mean") truth_.on_reward(value);
  done_ = report.done;
  progress_.update(row);
  for (const std::string& line : silence_.on_update(row))
    say(line);
  return folder_.check_here();
}

core::Result<void> RunReporter::on_evaluation(const actors::EvaluationReport& report) {
  const std::lock_guard lock(mutex_);
  observe::MetricRow row{report.done, unix_seconds(), {}};
  std::vector<std::string> alarms;
  const auto scored = [](const actors::EvaluatedSet& set) { return !set.accuracy.empty(); };
  if (!report.greedy && std::ranges::any_of(report.sets, scored)) {
    TROUPE_TRY_SET(row.values, sampled_figures(report, alarms));
  }
  for (const actors::EvaluatedSet& set : report.sets) {
    const std::string own = set.name.empty() ? "eval/" : "eval/" + set.name + "/";
    if (report.greedy && scored(set))
      row.values.emplace_back(own + "greedy", mean_of(set.accuracy));
    if (set.missing > 0) {
      row.values.emplace_back(own + (report.greedy ? "greedy_missing" : "missing"),
                              static_cast<double>(set.missing));
    }
  }
  row.values.emplace_back("time/eval", report.seconds);
  progress_.leave_out(report.seconds);
  TROUPE_TRY(record(row));
  for (const actors::EvaluatedSet& set : report.sets)
    say(held_out_line(report, set));
  for (const std::string& alarm : alarms)
    say(alarm);
  // What nothing could be scored for lacks figures that it may have later.
  if (report.greedy || !std::ranges::all_of(report.sets, scored)) return {};
  return best_.check();
}

// Metrics of the sampled evaluation, whose file the data role has just written.
core::Result<actors::Metrics> RunReporter::sampled_figures(const actors::EvaluationReport& report,
                                                           std::vector<std::string>& alarms) {
  TROUPE_TRY_ASSIGN(sets, config::eval_sets(config_));
  AnswerRules rules;
  for (const config::HeldOutSet& set : sets)
    rules[set.name] = {set.config.reward.rule, set.config.reward.rule_pattern};
  TROUPE_TRY_ASSIGN(problems, read_problems(folder_.eval_file(report.done), rules));
  TROUPE_TRY_ASSIGN(metrics, evaluation_metrics(problems, config_.eval.pass_score));
  for (const TruthAlarm::Alarm& alarm : truth_.on_evaluation(report.done, problems))
    alarms.push_back(alarm.text());
  metrics.emplace_back("alarm/reward_up_truth_down", alarms.empty() ? 0.0 : 1.0);
  return metrics;
}

core::Result<void> RunReporter::on_figures(std::uint64_t done,
                                           const actors::Metrics& figures,
                                           const std::string& line) {
  const std::lock_guard lock(mutex_);
  for (const auto& [name, value] : figures)
    if (name == "time/eval") progress_.leave_out(value);
  TROUPE_TRY(record({done, unix_seconds(), figures}));
  say(line);
  return best_.check();
}

core::Result<std::filesystem::path> RunReporter::begin_checkpoint(std::uint64_t done) {
  const auto here = folder_.check_here();
  if (!here && here.error().code == core::ErrorCode::kClosed) return here.failure();
  const std::lock_guard lock(mutex_);
  if (!here && !std::exchange(beside_, true)) {
    const auto rescue = store::free_sibling(folder_.path(), ".rescued-");
    files_.checkpoints = store::CheckpointStore(rescue / "ckpt", config_.ckpt.max_num);
  }
  TROUPE_TRY_ASSIGN(folder, files_.checkpoints.begin(done));
  open_checkpoint_.emplace(std::move(folder));
  return open_checkpoint_->path();
}

async::task<core::Result<std::filesystem::path>> RunReporter::commit_checkpoint(
    std::uint64_t done) {
  auto job = [this, done] { return commit_here(done); };
  auto committed = co_await hashing_.run(std::move(job));
  co_return committed;
}

// Moves and copies under the lock what it needs, then works without it: only one checkpoint is made
// at a time.
core::Result<std::filesystem::path> RunReporter::commit_here(std::uint64_t done) {
  std::unique_lock lock(mutex_);
  TROUPE_CHECK(open_checkpoint_.has_value(), "a checkpoint is begun before it is committed");
  store::AtomicFolder open = std::move(*open_checkpoint_);
  open_checkpoint_.reset();
  const store::CheckpointStore checkpoints = files_.checkpoints;
  const std::string arithmetic = arithmetic_;
  const LoadedModules modules = modules_;
  files_.output.checkpoint_begins();
  lock.unlock();
  const auto synced = store::sync_path(folder_.metrics_file());
  if (!synced && synced.error().code != core::ErrorCode::kNotFound) return synced.failure();
  const auto& hashes = contents_.get();  // blocks until all files are hashed
  if (!hashes) {
    on_note("a resume cannot tell whether the contents are the same: " + hashes.error().message);
  }
  Hashes all = hashes ? *hashes : Hashes();
  modules.add_to(all);
  TROUPE_TRY_ASSIGN(
      folder, checkpoints.commit(done, std::move(open), hashes_json(all, arithmetic, begins_at_)));
  on_note("checkpoint " + folder.string());
  lock.lock();
  files_.output.checkpoint_is(folder);
  logged_ = done;
  log_bytes_ = 0;
  const bool covers = !config_.run.keep_experience && !beside_;
  lock.unlock();
  if (covers) TROUPE_TRY(folder_.experience().remove_up_to(done));
  return folder;
}

// A file that cannot be read is noticed by whoever writes there.
bool RunReporter::log_is_long(std::uint64_t done) {
  const std::scoped_lock lock(mutex_);
  for (; logged_ < done; ++logged_) {
    const auto size = folder_.experience().size_of(logged_ + 1);
    if (size) log_bytes_ += *size;
  }
  return log_bytes_ >= static_cast<std::uint64_t>(config_.ckpt.log_bytes_max) ||
         files_.output.needs_checkpoint();
}

bool RunReporter::stop_requested() const {
  return app::stop_requested().load();
}

std::optional<core::TimePoint> RunReporter::stop_deadline() const {
  auto end = app::stop_deadline();
  const core::Duration all = std::chrono::seconds(config_.run.grace_s);
  if (end) *end -= std::min<core::Duration>(all / 4, limits::kGraceMargin);
  return end;
}

void RunReporter::on_given_up(const std::string& said) {
  {
    const std::lock_guard lock(mutex_);
    files_.output.log(said);
  }
  end_at_once(said);
}

core::Result<void> begin_in(const std::string& arithmetic,
                            const store::RunStart& start,
                            RunReporter& reporter) {
  TROUPE_TRY_ASSIGN(note, check_arithmetic(start, arithmetic));
  if (!note.empty()) reporter.on_note(note);
  reporter.computes_in(arithmetic);
  return {};
}

}  // namespace troupe::app
