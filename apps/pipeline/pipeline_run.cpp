#include "apps/pipeline/pipeline_run.hpp"

#include "apps/cli/words.hpp"
#include "apps/pipeline/limits.hpp"
#include "apps/pipeline/stage_runner.hpp"
#include "runtime/core/shell_word.hpp"
#include "runtime/core/texts.hpp"
#include "runtime/store/atomic_folder.hpp"
#include "runtime/store/io_error.hpp"
#include "runtime/store/run_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace troupe::pipeline {
namespace {

namespace fs = std::filesystem;

// A value as a part of a folder's name, or else its number.
std::string folder_word(const std::string& value, std::size_t number) {
  const auto good = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-' || c == '_';
  };
  const bool plain =
      !value.empty() && value.size() <= 40 && value[0] != '.' && std::ranges::all_of(value, good);
  return plain ? value : std::to_string(number);
}

std::string below(const std::string& prefix, const std::string& name) {
  return prefix.empty() ? name : prefix + "/" + name;
}

// What is known later stands as its reference.
std::string command_text(const std::vector<std::string>& words) {
  std::string out;
  for (std::string word : words) {
    const bool later = std::erase(word, kUnknown) > 0;
    out += (out.empty() ? "" : " ") + (later ? word : core::shell_word(word));
  }
  return out;
}

core::Failure at(const Block& block, core::Error error) {
  return fail(std::move(error.within(block.where)));
}

}  // namespace

Result<void> PipelineRun::check(bool print) {
  TROUPE_TRY(walk(Mode::kCheck));
  return print ? walk(Mode::kPrint) : Result<void>();
}

Result<void> PipelineRun::run() {
  TROUPE_TRY(lock());
  return walk(Mode::kRun);
}

Result<void> PipelineRun::lock() {
  TROUPE_TRY(store::make_folder(folder_));
  const fs::path file = folder_ / "pipeline.lock";
  core::OwnedFd held(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!held) return store::io_failure("open", file, errno);
  if (::flock(held.get(), LOCK_EX | LOCK_NB) == 0) {
    lock_ = std::move(held);
    return {};
  }
  return fail(ErrorCode::kResources, "another pipeline works in " + folder_.string(),
              "wait for it or choose another --folder");
}

Result<void> PipelineRun::walk(Mode mode) {
  mode_ = mode;
  rows_.clear();
  searches_.clear();
  searched_.clear();
  Scope scope;
  const fs::path here = file_.path.parent_path();
  scope.set("here", here.empty() ? std::string(".") : here.string());
  scope.set("folder", folder_.string());
  for (const auto& [name, value] : file_.variables) {
    auto filled = fill(value, scope.lookup());
    if (!filled) return fail(filled.error().within(file_.path.string() + ": variable " + name));
    scope.set(name, std::move(*filled));
  }
  return body(file_.body, scope, "");
}

Result<void> PipelineRun::body(const std::vector<Block>& blocks,
                               Scope& scope,
                               const std::string& prefix) {
  for (const Block& one : blocks)
    TROUPE_TRY(block(one, scope, prefix));
  return {};
}

Result<void> PipelineRun::block(const Block& block, Scope& scope, const std::string& prefix) {
  switch (block.kind) {
    case BlockKind::kStage:
      return stage(block, scope, prefix);
    case BlockKind::kRepeat:
      return repeat(block, scope, prefix);
    case BlockKind::kEach:
      return each(block, scope, prefix);
    case BlockKind::kSearch:
      return search(block, scope, prefix);
  }
  return {};
}

Result<void> PipelineRun::repeat(const Block& block, Scope& scope, const std::string& prefix) {
  auto count = fill(block.count, scope.lookup());
  if (!count) return at(block, count.error());
  const auto rounds =
      count->items.size() == 1 ? core::number_of<double>(count->items[0]) : std::nullopt;
  if (!rounds || *rounds != std::floor(*rounds) || *rounds < 1 ||
      *rounds > static_cast<double>(limits::kPipelineLoop_max)) {
    return fail(ErrorCode::kConfig, block.where + ": repeat: a number of rounds from 1 to " +
                                        std::to_string(limits::kPipelineLoop_max) + " expected");
  }
  Scope last(&scope);
  for (int round = 1; round <= static_cast<int>(*rounds); ++round) {
    Scope inner(&scope);
    inner.set(block.name, std::to_string(round));
    const Scope before = last;  // what `then` refers to: the stages of the round before
    for (const auto& [name, value] : round == 1 ? block.first : block.then) {
      auto filled = fill(value, before.lookup());
      if (!filled) return at(block, filled.error());
      inner.set(name, std::move(*filled));
    }
    TROUPE_TRY(body(block.body, inner, below(prefix, block.name + "-" + std::to_string(round))));
    last = inner;
  }
  scope.take(last);
  return {};
}

Result<void> PipelineRun::each(const Block& block, Scope& scope, const std::string& prefix) {
  auto values = fill(block.count, scope.lookup());
  if (!values) return at(block, values.error());
  if (values->items.empty() || values->items.size() > limits::kPipelineLoop_max) {
    return fail(ErrorCode::kConfig,
                block.where + ": each: 1 to " + std::to_string(limits::kPipelineLoop_max) +
                    " values expected, not " + std::to_string(values->items.size()));
  }
  std::size_t number = 0;
  for (const std::string& value : values->items) {
    Scope inner(&scope);
    inner.set(block.name, value);
    TROUPE_TRY(
        body(block.body, inner, below(prefix, block.name + "-" + folder_word(value, ++number))));
  }
  return {};
}

// Runs the body for each point and keeps the one whose figure is best; of equal ones the first.
Result<void> PipelineRun::search(const Block& block, Scope& scope, const std::string& prefix) {
  if (const auto found = searched_.find(&block); block.once && found != searched_.end()) {
    scope.take(found->second);
    return {};
  }
  SearchRow row{below(prefix, block.name), {}, 0};
  Scope best(&scope);
  bool known = true;
  for (std::size_t i = 0; i < block.points.size(); ++i) {
    Scope inner(&scope);
    SearchRow::Point point;
    for (const auto& [name, value] : block.points[i]) {
      auto filled = fill(value, scope.lookup());
      if (!filled) return at(block, filled.error());
      point.variables[name] = *filled;
      inner.set(name, std::move(*filled));
    }
    TROUPE_TRY(body(block.body, inner, row.id + "/point-" + std::to_string(i + 1)));
    auto figure = fill(block.best, inner.lookup());
    if (!figure) return at(block, figure.error());
    known = known && !is_unknown(*figure);
    const auto value = known ? core::number_of<double>(*figure) : std::nullopt;
    if (known && (!value || !std::isfinite(*value)))
      return fail(ErrorCode::kData, block.where + ": best: '" + *figure + "' is not a number");
    point.figure = value.value_or(0);
    const double sign = block.lowest ? -1 : 1;
    if (i == 0 || sign * point.figure > sign * row.points[row.best].figure) {
      row.best = i;
      best = inner;
    }
    row.points.push_back(std::move(point));
  }
  auto chosen = row.points[row.best].variables;
  if (!known) {  // before the points have run
    for (auto& [name, value] : chosen)
      value = Value{{std::string(1, kUnknown) + "${" + block.name + "." + name + "}"}, false};
  } else if (mode_ == Mode::kRun) {
    std::string said = "== " + row.id + ": the best is";
    for (const auto& [name, value] : chosen)
      said += " " + name + "=" + (value.items.empty() ? "" : value.items[0]);
    cli::say(said + " (" + std::to_string(row.points[row.best].figure) + ")");
  }
  Scope result;
  result.take(best);
  result.set_search(block.name, chosen);
  scope.take(result);
  searches_.push_back(std::move(row));
  if (block.once) searched_.emplace(&block, std::move(result));
  return {};
}

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
  auto words = lines_.of(stage, scope, turn->folder);
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
    if (mode_ == Mode::kRun && !turn->finished())
      TROUPE_TRY(StageRunner(file_.silent_s).run(*words, *turn));
    for (const auto& [column, figure] : rows_.back().report) {
      if (mode_ != Mode::kRun || turn->record.figures.contains(figure)) continue;
      cli::warn("stage " + turn->record.id + " gave no figure '" + figure + "' for the column '" +
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
    if (mode_ == Mode::kPrint) cli::say(id + ": " + what + "\n    troupe " + command_text(words));
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
    if (mode_ == Mode::kRun) cli::say("== " + id + ": done before");
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
      cli::say("== " + id + ": runs again, because " + why + "; what was there is in " +
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

}  // namespace troupe::pipeline
