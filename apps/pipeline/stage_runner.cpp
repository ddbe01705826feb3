#include "apps/pipeline/stage_runner.hpp"

#include "apps/cli/stop_signal.hpp"
#include "apps/cli/words.hpp"
#include "apps/pipeline/limits.hpp"
#include "apps/pipeline/processes.hpp"
#include "runtime/core/texts.hpp"
#include "runtime/store/atomic_folder.hpp"

#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <fstream>
#include <thread>

namespace troupe::pipeline {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kLastLines = 20;

std::string seconds_text(double seconds) {
  if (seconds < 90) return core::printed("%.1f s", seconds);
  const int whole = static_cast<int>(seconds);
  return core::printed("%d min %02d s", whole / 60, whole % 60);
}

std::string last_lines(const fs::path& log) {
  std::ifstream in(log);
  std::deque<std::string> lines;
  for (std::string line; std::getline(in, line);) {
    lines.push_back(line.substr(0, 1000));
    if (lines.size() > kLastLines) lines.pop_front();
  }
  std::string out;
  for (const std::string& line : lines)
    out += "   " + line + "\n";
  return out;
}

ErrorCode code_of(int wait_status) {
  switch (WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 5) {
    case 2:
      return ErrorCode::kConfig;
    case 3:
      return ErrorCode::kResources;
    case 4:
      return ErrorCode::kData;
    case 5:
      return ErrorCode::kPeerLost;
    case 6:
      return ErrorCode::kNumeric;
    case 130:
      return ErrorCode::kInterrupted;
    default:
      return ErrorCode::kInternal;
  }
}

// Waits, but not for long once a stop is asked for.
void pause(std::chrono::milliseconds time) {
  const auto end = Clock::now() + time;
  while (!cli::stop_requested() && Clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

}  // namespace

bool has_output(const StageTurn& turn) {
  return turn.command->out_name.empty() || fs::exists(turn.folder / turn.command->out_name);
}

// Writes the record; while the disk is full it waits for room.
Result<void> StageRunner::save(const StageTurn& turn) const {
  for (bool said = false;; said = true) {
    const auto saved = write_record(turn.folder, turn.record);
    if (saved || saved.error().code != ErrorCode::kNoRoom || cli::stop_requested()) return saved;
    if (!said) cli::warn(saved.error().message + "; " + turn.record.id + " waits for room");
    pause(std::chrono::seconds(2));
  }
}

Result<void> StageRunner::finish(StageTurn& turn) const {
  const StageFigures found =
      turn.command->name == "train"
          ? training_figures(turn.folder / turn.command->out_name / "metrics.jsonl")
          : printed_figures(turn.folder / "log.txt");
  turn.record.figures = found.figures;
  turn.record.steps = found.steps;
  turn.record.state = "finished";
  return save(turn);
}

Result<void> StageRunner::run(const std::vector<std::string>& words, StageTurn& turn) const {
  StageRecord& record = turn.record;
  const fs::path log = turn.folder / "log.txt";
  if (cli::stop_requested()) {
    return fail(ErrorCode::kInterrupted, "stopped before stage " + record.id,
                "the same command continues from there");
  }
  TROUPE_TRY(store::make_folder(turn.folder));
  if (turn.command->leftover == Leftover::kWhole && has_output(turn)) return finish(turn);
  const bool goes_on = record.attempts > 0;
  cli::say("== " + record.id + ": troupe " + words[0] +
           (words.size() > 1 && !words[1].starts_with("-") ? " " + words[1] : "") +
           (goes_on ? ", goes on" : ""));
  std::vector<Clock::time_point> losses;
  for (;;) {
    if (turn.command->leftover == Leftover::kRemoved && has_output(turn)) {
      std::error_code ignored;
      fs::remove_all(turn.folder / turn.command->out_name, ignored);
    }
    record.state = "running";
    ++record.attempts;
    TROUPE_TRY(save(turn));
    const double wall_before = record.wall_s, cpu_before = record.cpu_s;
    auto saved_at = Clock::now();
    const auto tick = [&](double wall_s, double cpu_s) {
      record.wall_s = wall_before + wall_s;
      record.cpu_s = cpu_before + cpu_s;
      if (Clock::now() - saved_at < limits::kStageRecordEvery) return;
      saved_at = Clock::now();
      static_cast<void>(write_record(turn.folder, record));  // the last one is enough
    };
    TROUPE_TRY_ASSIGN(end, run_stage(words, log, silent_s_, tick));
    tick(end.wall_s, end.cpu_s);
    if (end.succeeded()) {
      end_descendants();
      TROUPE_TRY(finish(turn));
      cli::say("   " + seconds_text(record.wall_s) + ", " + seconds_text(record.cpu_s) +
               " of the processors" +
               (record.losses > 0 ? ", started again: " + std::to_string(record.losses) : ""));
      return {};
    }
    if (end.stopped || cli::stop_requested()) {
      end_descendants();
      record.state = "stopped";
      TROUPE_TRY(save(turn));
      return fail(ErrorCode::kInterrupted, "stopped in stage " + record.id,
                  "the same command continues from there");
    }
    const auto now = Clock::now();
    losses.push_back(now);
    std::erase_if(losses, [&](auto then) { return now - then > limits::kStageLossesWithin; });
    if (!end.may_pass() || losses.size() >= limits::kStageLosses_max) {
      end_descendants();
      record.state = "failed";
      record.error = end.how();
      TROUPE_TRY(save(turn));
      std::fputs(last_lines(log).c_str(), stderr);
      return fail(code_of(end.status), "stage " + record.id + " " + end.how(),
                  "its log is " + log.string() + ", and the same command continues from there");
    }
    ++record.losses;
    TROUPE_TRY(save(turn));
    cli::warn("stage " + record.id + " " + end.how() + "; it is started again");
    pause(std::chrono::milliseconds(250 << std::min<std::size_t>(losses.size(), 6)));
  }
}

}  // namespace troupe::pipeline
