#include "apps/pipeline/pipeline_run.hpp"

#include "apps/cli/stop_signal.hpp"
#include "apps/cli/words.hpp"
#include "apps/pipeline/limits.hpp"
#include "runtime/store/atomic_folder.hpp"
#include "runtime/store/io_error.hpp"
#include "runtime/store/run_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <optional>
#include <utility>

namespace troupe::pipeline {
namespace {

namespace fs = std::filesystem;
using core::ErrorCode;
using core::fail;
using core::Result;

std::optional<double> number_in(const std::string& text) {
  double out = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), out);
  if (parsed.ec != std::errc{} || parsed.ptr != text.data() + text.size()) return std::nullopt;
  return out;
}

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

// The keys that the file shares, then the stage's own, which replace them.
Values keys_of(const Stage& stage, const PipelineFile& file) {
  std::string command;
  Values keys;
  const auto take = [&](const Values& some) {
    for (const auto& one : some) {
      const auto same = [&](const auto& other) {
        return flag_of(other.first) == flag_of(one.first);
      };
      std::erase_if(keys, same);
      keys.push_back(one);
    }
  };
  for (const std::string& word : stage.command) {
    command += (command.empty() ? "" : " ") + word;
    for (const auto& [name, some] : file.shared) {
      if (name == command) take(some);
    }
  }
  take(stage.keys);
  return keys;
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
  const auto rounds = count->items.size() == 1 ? number_in(count->items[0]) : std::nullopt;
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
    const auto value = known ? number_in(*figure) : std::nullopt;
    if (known && (!value || !std::isfinite(*value))) {
      return fail(ErrorCode::kData, block.where + ": best: '" + *figure + "' is no number");
    }
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
    app::say(said + " (" + std::to_string(row.points[row.best].figure) + ")");
  }
  Scope result;
  result.take(best);
  result.set_search(block.name, chosen);
  scope.take(result);
  searches_.push_back(std::move(row));
  if (block.once) searched_.emplace(&block, std::move(result));
  return {};
}

Result<std::string> PipelineRun::budget_steps(const Stage& stage, const Scope& scope) const {
  TROUPE_TRY_ASSIGN(seconds, fill(stage.budget->cpu_s, scope.lookup()));
  TROUPE_TRY_ASSIGN(name, fill(stage.budget->rate_of, scope.lookup()));
  const StageTurn* turn = scope.stage(name);
  if (turn == nullptr || turn->command->name != "train" || stage.command[0] != "train") {
    return fail(ErrorCode::kConfig,
                "budget: rate_of: '" + name + "' is no training stage before this one",
                "a budget is for `train` alone");
  }
  if (is_unknown(seconds) || !turn->finished()) return std::string(1, kUnknown) + "${budget}";
  const auto budget = number_in(seconds);
  if (!budget || !(*budget > 0)) {
    return fail(ErrorCode::kConfig, "budget: cpu_s: '" + seconds + "' is no number above 0");
  }
  if (turn->record.steps == 0 || !(turn->record.cpu_s > 0)) {
    return fail(ErrorCode::kData,
                "budget: stage '" + name + "' has no steps or took no time to compare with");
  }
  const double steps = *budget * static_cast<double>(turn->record.steps) / turn->record.cpu_s;
  return std::to_string(static_cast<std::uint64_t>(std::max(1.0, std::floor(steps))));
}

Result<std::vector<std::string>> PipelineRun::command_line(const Stage& stage,
                                                           const Scope& scope,
                                                           const fs::path& folder) const {
  std::vector<std::string> config;
  for (const std::string& file : stage.config) {
    TROUPE_TRY_ASSIGN(filled, fill(file, scope.lookup()));
    const fs::path path = file_.path.parent_path() / filled;  // an absolute one stays as it is
    if (!is_unknown(filled) && !fs::is_regular_file(path)) {
      return fail(ErrorCode::kNotFound, "config: there is no file " + path.string());
    }
    config.push_back(path.lexically_normal().string());
  }
  Values keys;
  for (const auto& [key, value] : keys_of(stage, file_)) {
    TROUPE_TRY_ASSIGN(filled, fill(value, scope.lookup()));
    keys.emplace_back(key, std::move(filled));
  }
  if (stage.budget) {
    TROUPE_TRY_ASSIGN(steps, budget_steps(stage, scope));
    keys.emplace_back("train.max_steps", Value{{steps}, false});
  }
  Stage filled = stage;
  for (std::string& word : filled.command)
    TROUPE_TRY_SET(word, fill(word, scope.lookup()));
  return words_of(filled, config, keys, folder);
}

}  // namespace troupe::pipeline
