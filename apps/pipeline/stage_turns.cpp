// The stages of a pipeline's walk: what to do with one, and doing it.
#include "apps/cli/stop_signal.hpp"
#include "apps/cli/words.hpp"
#include "apps/pipeline/limits.hpp"
#include "apps/pipeline/pipeline_run.hpp"
#include "apps/pipeline/processes.hpp"
#include "runtime/core/split.hpp"
#include "runtime/store/atomic_folder.hpp"
#include "runtime/store/run_folder.hpp"

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
using core::ErrorCode;
using core::fail;
using core::Result;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kLastLines = 20;

std::string command_text(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) {
    const bool plain = !word.empty() && word.find_first_of(" \t\n'\"\\*?<>|&;()") == word.npos;
    out += (out.empty() ? "" : " ") + (plain ? word : "'" + word + "'");
  }
  std::erase(out, kUnknown);
  return out;
}

std::string seconds_text(double seconds) {
  char text[64];
  if (seconds < 90) {
    std::snprintf(text, sizeof text, "%.1f s", seconds);
  } else {
    std::snprintf(text, sizeof text, "%d min %02d s", static_cast<int>(seconds) / 60,
                  static_cast<int>(seconds) % 60);
  }
  return text;
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
  while (!app::stop_requested() && Clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

bool has_output(const StageTurn& turn) {
  return turn.command->out_name.empty() || fs::exists(turn.folder / turn.command->out_name);
}

}  // namespace

Result<void> PipelineRun::stage(const Block& block, Scope& scope, const std::string& prefix) {
  const Stage& stage = block.stage;
  const auto placed = [&](const core::Error& error) {
    return fail(error.within(block.where + ": stage '" + stage.name + "'"));
  };
  auto turn = std::make_shared<StageTurn>();
  turn->command = stage_command(stage);
  if (turn->command == nullptr) {
    return placed(
        {ErrorCode::kConfig,
         "`" + stage.command[0] + "` cannot be a stage; it is one of " + stage_command_names()});
  }
  turn->record.id = prefix.empty() ? stage.name : prefix + "/" + stage.name;
  turn->folder = folder_ / turn->record.id;
  if (rows_.size() >= limits::kPipelineStages_max) {
    return placed(
        {ErrorCode::kConfig,
         "the pipeline has more than " + std::to_string(limits::kPipelineStages_max) + " stages"});
  }
  auto words = command_line(stage, scope, turn->folder);
  if (!words) return placed(words.error());
  const auto shown = stage.command.begin() + std::min<std::ptrdiff_t>(2, std::ssize(stage.command));
  StageRow row{turn->record.id, command_text({stage.command.begin(), shown}), turn, {}, false};
  if (row.command.find("${") != row.command.npos) row.command = stage.command[0];
  for (const auto& [column, figure] : stage.report) {
    auto filled = fill(figure, scope.lookup());
    if (!filled) return placed(filled.error());
    row.report.emplace_back(column, std::move(*filled));
  }
  rows_.push_back(std::move(row));
  if (mode_ == Mode::kCheck) {
    if (check_ && std::ranges::none_of(*words, is_unknown)) {
      const auto good = check_(*words);
      if (!good) return placed(good.error());
    }
  } else {
    auto looked = look_at(*words, *turn);
    if (!looked) return placed(looked.error());
    rows_.back().before = turn->finished();
    if (mode_ == Mode::kRun && !turn->finished()) TROUPE_TRY(bring_to_end(*words, *turn));
    for (const auto& [column, figure] : rows_.back().report) {
      if (mode_ != Mode::kRun || turn->record.figures.contains(figure)) continue;
      app::warn("stage " + turn->record.id + " gave no figure '" + figure + "' for the column '" +
                column + "'; its figures are in " + (turn->folder / "stage.json").string());
    }
  }
  scope.set(stage.name, std::shared_ptr<const StageTurn>(std::move(turn)));
  return {};
}

// Compares the stage with what its folder holds. A stage that was another one is set aside.
Result<void> PipelineRun::look_at(const std::vector<std::string>& words, StageTurn& turn) {
  const std::string id = turn.record.id;
  const auto told = [&](const std::string& what) {
    if (mode_ == Mode::kPrint) app::say(id + ": " + what + "\n    troupe " + command_text(words));
  };
  auto record = read_record(turn.folder);
  const bool guessed = std::ranges::any_of(words, is_unknown) ||
                       std::ranges::any_of(rows_, [&](const StageRow& row) {
                         const std::string folder = row.turn->folder.string() + "/";
                         return row.turn.get() != &turn && !row.turn->finished() &&
                                std::ranges::any_of(words, [&](const std::string& word) {
                                  return word.find(folder) != word.npos;
                                });
                       });
  if (guessed) {  // only without running anything
    told(record ? "runs again if what it begins with changes" : "to run");
    return {};
  }
  TROUPE_TRY_ASSIGN(inputs, inputs_of(words, turn.folder, folder_));
  if (record && record->inputs == inputs && record->finished() && has_output(turn)) {
    turn.record = std::move(*record);
    turn.record.id = id;
    told("finished");
    if (mode_ == Mode::kRun) app::say("== " + id + ": done before");
    return {};
  }
  std::string why;
  if (record && record->inputs != inputs) {
    why = difference(record->inputs, inputs);
  } else if (record && record->finished()) {
    why = "what it wrote is gone";
  } else if (!record && !turn.command->out_name.empty() && has_output(turn)) {
    why = "its record is missing";
  }
  if (!why.empty()) {
    told("runs again: " + why);
    if (mode_ == Mode::kRun) {
      TROUPE_TRY_ASSIGN(aside, store::set_aside(turn.folder));
      app::say("== " + id + ": runs again, because " + why + "; what was there is in " +
               aside.string());
    }
    record.reset();
  } else {
    told(record ? "to go on" : "to run");
  }
  if (record) turn.record = std::move(*record);
  turn.record.id = id;
  turn.record.state = "running";
  turn.record.inputs = std::move(inputs);
  return {};
}

// Writes the record; while the disk is full it waits for room.
Result<void> PipelineRun::save(const StageTurn& turn) const {
  for (bool said = false;; said = true) {
    const auto saved = write_record(turn.folder, turn.record);
    if (saved || saved.error().code != ErrorCode::kNoRoom || app::stop_requested()) return saved;
    if (!said) app::warn(saved.error().message + "; " + turn.record.id + " waits for room");
    pause(std::chrono::seconds(2));
  }
}

Result<void> PipelineRun::finish(StageTurn& turn) const {
  const StageFigures found =
      turn.command->name == "train"
          ? training_figures(turn.folder / turn.command->out_name / "metrics.jsonl")
          : printed_figures(turn.folder / "log.txt");
  turn.record.figures = found.figures;
  turn.record.steps = found.steps;
  turn.record.state = "finished";
  return save(turn);
}

Result<void> PipelineRun::bring_to_end(const std::vector<std::string>& words, StageTurn& turn) {
  StageRecord& record = turn.record;
  const fs::path log = turn.folder / "log.txt";
  if (app::stop_requested()) {
    return fail(ErrorCode::kInterrupted, "stopped before stage " + record.id,
                "the same command goes on from there");
  }
  TROUPE_TRY(store::make_folder(turn.folder));
  if (turn.command->leftover == Leftover::kWhole && has_output(turn)) return finish(turn);
  const bool goes_on = record.attempts > 0;
  app::say("== " + record.id + ": troupe " + words[0] +
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
    TROUPE_TRY_ASSIGN(end, run_stage(words, log, file_.silent_s, tick));
    tick(end.wall_s, end.cpu_s);
    if (end.succeeded()) {
      end_descendants();
      TROUPE_TRY(finish(turn));
      app::say("   " + seconds_text(record.wall_s) + ", " + seconds_text(record.cpu_s) +
               " of the processors" +
               (record.losses > 0 ? ", started again: " + std::to_string(record.losses) : ""));
      return {};
    }
    if (end.stopped || app::stop_requested()) {
      end_descendants();
      record.state = "stopped";
      TROUPE_TRY(save(turn));
      return fail(ErrorCode::kInterrupted, "stopped in stage " + record.id,
                  "the same command goes on from there");
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
                  "its log is " + log.string() + ", and the same command goes on from there");
    }
    ++record.losses;
    TROUPE_TRY(save(turn));
    app::warn("stage " + record.id + " " + end.how() + "; it is started again");
    pause(std::chrono::milliseconds(250 << std::min<std::size_t>(losses.size(), 6)));
  }
}

}  // namespace troupe::pipeline
