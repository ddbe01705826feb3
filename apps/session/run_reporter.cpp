#include "apps/session/run_reporter.hpp"

#include "apps/cli/stop_signal.hpp"
#include "apps/session/eval_figures.hpp"
#include "apps/session/limits.hpp"
#include "apps/session/reward_words.hpp"
#include "runtime/config/eval_sets.hpp"
#include "runtime/core/foreign_text.hpp"
#include "runtime/core/shell_word.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <numeric>
#include <utility>

namespace troupe::session {
namespace {

double unix_seconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

// "held-out after 4 updates: greedy 0.500 on 10 problems, 2 more without a score (1.0 s)"
std::string held_out_line(const actors::controller::EvaluationReport& report,
                          const actors::controller::EvaluatedSet& set) {
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
  if (resumed_at && start.checkpoint->folder.parent_path() == folder.checkpoint_folder())
    output.checkpoint_is(start.checkpoint->folder);
  std::unique_ptr<RunReporter> made(
      new RunReporter(std::move(output), config, start, updates, clock, contents));
  made->best_.read(folder.metrics_file());
  made->checkpoints_.card().read(folder.metrics_file());
  made->truth_.restore(folder);
  made->silence_.restore(folder);
  if (const auto& best = made->best_.best()) made->checkpoints_.store().keep_also(best->step);
  for (const auto* said : {&start.notes, &notes})
    for (const std::string& note : *said)
      made->on_note(note);
  return made;
}

RunReporter::RunReporter(RunOutput output,
                         const config::TrainConfig& config,
                         const store::RunStart& start,
                         std::uint64_t updates,
                         const core::Clock& clock,
                         const Hashing& contents)
    : config_(config),
      folder_(start.folder),
      output_(std::move(output)),
      checkpoints_(config_, start, contents),
      best_(config.ckpt.best_metric_key),
      silence_(samples_of_update(config)),
      headway_(updates_in(start)),
      display_(config.log.format, clock, updates_in(start), updates) {}

void RunReporter::on_note(const std::string& text) {
  const std::lock_guard lock(mutex_);
  say(text);
}

void RunReporter::on_modules(const std::string& who, const std::string& modules) {
  const std::lock_guard lock(mutex_);
  for (const std::string& changed : checkpoints_.modules().take(who, modules))
    say(changed);
}

void RunReporter::on_failed_update(const actors::controller::FailedUpdate& failed) {
  const std::lock_guard lock(mutex_);
  failed_ = failed;
}

actors::controller::FailedUpdate RunReporter::failed_update() const {
  const std::lock_guard lock(mutex_);
  return failed_;
}

void RunReporter::say(const std::string& text) {
  output_.log(text);
  display_.progress().note(core::barred(text));
}

void RunReporter::on_phase(const std::string& phase) {
  const std::lock_guard lock(mutex_);
  display_.begin(phase);
}

void RunReporter::on_groups(const actors::GroupCounts& counts) {
  const std::lock_guard lock(mutex_);
  display_.on_groups(counts);
}

void RunReporter::computes_in(std::string arithmetic) {
  const std::lock_guard lock(mutex_);
  checkpoints_.computes_in(std::move(arithmetic));
}

std::uint64_t RunReporter::done() const {
  const std::lock_guard lock(mutex_);
  return headway_.done();
}

std::vector<std::pair<std::string, double>> RunReporter::phases() {
  const std::lock_guard lock(mutex_);
  return display_.phases();
}

core::Result<void> RunReporter::record(const observe::MetricRow& row) {
  const auto told = [this](const std::string& text) { say(text); };
  TROUPE_TRY(output_.look_after_files(told));
  TROUPE_TRY(output_.write(row, told));
  checkpoints_.card().offer(row);
  if (!best_.offer(row)) return {};
  checkpoints_.store().keep_also(row.step);
  char line[160];
  std::snprintf(line, sizeof line, "best %s so far: %.4f after %llu", best_.name().c_str(),
                best_.best()->value, static_cast<unsigned long long>(row.step));
  say(line);
  return {};
}

std::string RunReporter::on_diverged(std::uint64_t updates) {
  const std::lock_guard lock(mutex_);
  headway_.on_diverged(updates);
  if (const auto aside = checkpoints_.store().set_aside_from(updates); !aside)
    say(aside.error().message);
  const auto steps = checkpoints_.store().steps();
  if (!steps || steps->empty()) return {};
  return checkpoints_.store().folder_of(steps->back()).string();
}

std::optional<std::uint64_t> RunReporter::last_good() const {
  const std::lock_guard lock(mutex_);
  return headway_.last_good();
}

core::Result<std::vector<std::uint64_t>> RunReporter::checkpoints() const {
  const std::lock_guard lock(mutex_);
  return checkpoints_.store().steps();
}

bool RunReporter::has_saved() const {
  const std::lock_guard lock(mutex_);
  return checkpoints_.any_made();
}

core::Result<void> RunReporter::go_back_to(const Returns::Place& place, const std::string& cause) {
  const std::lock_guard lock(mutex_);
  TROUPE_TRY(checkpoints_.store().set_aside_from(place.step + 1));
  const std::string unit = config_.method == config::kPpo ? "update " : "step ";
  const std::string to = place.is_start ? "what the run began with"
                                        : checkpoints_.store().folder_of(place.step).string();
  // The report reads the beginning of this line.
  say("going back from " + unit + std::to_string(headway_.done() + 1) + " to " + unit +
      std::to_string(place.step) + ": " + to + ", return " + std::to_string(place.nth) +
      " of at most " + std::to_string(limits::kDivergences_max) + ", then with other data (" +
      cause + ")");
  return {};
}

bool RunReporter::is_best(std::uint64_t done) const {
  const std::lock_guard lock(mutex_);
  return done > 0 && best_.best() && best_.best()->step == done;
}

// Shows a traceback in full once; while the next failures repeat it, shows only its last line.
void RunReporter::on_failed_group(const actors::controller::FailedGroup& group) {
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
  output_.log(name + (up ? " is up" : ": " + cause));
}

void RunReporter::on_rewards(const actors::SetRewards& set) {
  on_note(set_words(set));
  const std::lock_guard lock(mutex_);
  reward_sets_.try_emplace(set.set, set);
}

std::map<std::uint64_t, actors::SetRewards> RunReporter::reward_sets() const {
  const std::lock_guard lock(mutex_);
  return reward_sets_;
}

void RunReporter::on_awaited_rewards(const std::set<std::string>& names) {
  const std::string join = " --join " + core::shell_word(folder_.path().string()) + " --name ";
  for (const std::string& name : names) {
    on_note("waiting for reward " + name +
            ", which was attached to this run: `troupe attach reward" + join + name +
            " ...` as before brings it back, `troupe detach reward" + join + name +
            "` goes on without it");
  }
}

core::Result<void> RunReporter::on_update(const actors::controller::UpdateReport& report) {
  const std::lock_guard lock(mutex_);
  const observe::MetricRow row{report.done, unix_seconds(), report.metrics};
  TROUPE_TRY(record(row));
  for (const auto& [name, value] : report.metrics)
    if (name == "reward/mean") truth_.on_reward(value);
  headway_.on_update(row);
  display_.progress().update(row);
  for (const std::string& line : silence_.on_update(row))
    say(line);
  return folder_.check_here();
}

core::Result<void> RunReporter::on_evaluation(const actors::controller::EvaluationReport& report) {
  const std::lock_guard lock(mutex_);
  observe::MetricRow row{report.done, unix_seconds(), {}};
  std::vector<std::string> alarms;
  const auto scored = [](const actors::controller::EvaluatedSet& set) {
    return !set.accuracy.empty();
  };
  if (!report.greedy && std::ranges::any_of(report.sets, scored)) {
    TROUPE_TRY_SET(row.values, sampled_figures(report, alarms));
  }
  for (const actors::controller::EvaluatedSet& set : report.sets) {
    const std::string own = set.name.empty() ? "eval/" : "eval/" + set.name + "/";
    if (report.greedy && scored(set))
      row.values.emplace_back(own + "greedy", mean_of(set.accuracy));
    if (set.missing > 0) {
      row.values.emplace_back(own + (report.greedy ? "greedy_missing" : "missing"),
                              static_cast<double>(set.missing));
    }
  }
  row.values.emplace_back("time/eval", report.seconds);
  display_.progress().leave_out(report.seconds);
  TROUPE_TRY(record(row));
  for (const actors::controller::EvaluatedSet& set : report.sets)
    say(held_out_line(report, set));
  for (const std::string& alarm : alarms)
    say(alarm);
  // What nothing could be scored for lacks figures that it may have later.
  if (report.greedy || !std::ranges::all_of(report.sets, scored)) return {};
  return best_.check();
}

// Metrics of the sampled evaluation, whose file the data role has just written.
core::Result<actors::controller::Metrics> RunReporter::sampled_figures(
    const actors::controller::EvaluationReport& report, std::vector<std::string>& alarms) {
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
                                           const actors::controller::Metrics& figures,
                                           const std::string& line) {
  const std::lock_guard lock(mutex_);
  for (const auto& [name, value] : figures)
    if (name == "time/eval") display_.progress().leave_out(value);
  TROUPE_TRY(record({done, unix_seconds(), figures}));
  say(line);
  return best_.check();
}

core::Result<std::filesystem::path> RunReporter::begin_checkpoint(std::uint64_t done) {
  const std::lock_guard lock(mutex_);
  return checkpoints_.begin(done);
}

async::task<core::Result<std::filesystem::path>> RunReporter::commit_checkpoint(
    std::uint64_t done) {
  auto job = [this, done] { return commit_here(done); };
  auto committed = co_await hashing_.run(std::move(job));
  co_return committed;
}

core::Result<std::filesystem::path> RunReporter::commit_here(std::uint64_t done) {
  std::unique_lock lock(mutex_);
  RunCheckpoints::Open open = checkpoints_.take(done);
  output_.checkpoint_begins();
  lock.unlock();
  const auto note = [this](const std::string& text) { on_note(text); };
  TROUPE_TRY_ASSIGN(folder, checkpoints_.write(done, std::move(open), note));
  on_note("checkpoint " + folder.string());
  lock.lock();
  output_.checkpoint_is(folder);
  const bool covers = checkpoints_.written(done);
  lock.unlock();
  if (covers) TROUPE_TRY(folder_.experience().remove_up_to(done));
  return folder;
}

bool RunReporter::log_is_long(std::uint64_t done) {
  const std::scoped_lock lock(mutex_);
  return checkpoints_.log_is_long(done) || output_.needs_checkpoint();
}

bool RunReporter::stop_requested() const {
  return cli::stop_requested().load();
}

std::optional<core::TimePoint> RunReporter::stop_deadline() const {
  auto end = cli::stop_deadline();
  const core::Duration all = std::chrono::seconds(config_.run.grace_s);
  if (end) *end -= std::min<core::Duration>(all / 4, limits::kGraceMargin);
  return end;
}

void RunReporter::on_given_up(const std::string& said) {
  {
    const std::lock_guard lock(mutex_);
    output_.log(said);
  }
  cli::end_at_once(said);
}

core::Result<void> begin_in(const std::string& arithmetic,
                            const store::RunStart& start,
                            RunReporter& reporter) {
  TROUPE_TRY_ASSIGN(note, check_arithmetic(start, arithmetic));
  if (!note.empty()) reporter.on_note(note);
  reporter.computes_in(arithmetic);
  return {};
}

}  // namespace troupe::session
