#include "apps/pipeline/command_lines.hpp"

#include "runtime/core/texts.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace troupe::pipeline {

namespace fs = std::filesystem;

namespace {

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

}  // namespace

Result<std::string> CommandLines::budget_steps(const Stage& stage, const Scope& scope) const {
  TROUPE_TRY_ASSIGN(seconds, fill(stage.budget->cpu_s, scope.lookup()));
  TROUPE_TRY_ASSIGN(name, fill(stage.budget->rate_of, scope.lookup()));
  const StageTurn* turn = scope.stage(name);
  if (turn == nullptr || turn->command->name != "train" || stage.command[0] != "train") {
    return fail(ErrorCode::kConfig,
                "budget: rate_of: '" + name + "' is not a training stage before this one",
                "a budget is for `train` alone");
  }
  if (is_unknown(seconds) || !turn->finished()) return std::string(1, kUnknown) + "${budget}";
  const auto budget = core::number_of<double>(seconds);
  if (!budget || !(*budget > 0))
    return fail(ErrorCode::kConfig, "budget: cpu_s: '" + seconds + "' is not a number above 0");
  if (turn->record.steps == 0 || !(turn->record.cpu_s > 0)) {
    return fail(ErrorCode::kData,
                "budget: stage '" + name + "' has no steps or took no time to compare with");
  }
  const double steps = *budget * static_cast<double>(turn->record.steps) / turn->record.cpu_s;
  return std::to_string(static_cast<std::uint64_t>(std::max(1.0, std::floor(steps))));
}

Result<std::vector<std::string>> CommandLines::of(const Stage& stage,
                                                  const Scope& scope,
                                                  const fs::path& folder) const {
  std::vector<std::string> config;
  for (const std::string& file : stage.config) {
    TROUPE_TRY_ASSIGN(filled, fill(file, scope.lookup()));
    const fs::path path = file_.path.parent_path() / filled;  // an absolute one stays as it is
    if (!is_unknown(filled) && !fs::is_regular_file(path))
      return fail(ErrorCode::kNotFound, "config: there is no file " + path.string());
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
