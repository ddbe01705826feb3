#include "apps/pipeline/scope.hpp"

#include "runtime/core/edit_distance.hpp"
#include "runtime/core/texts.hpp"

#include <algorithm>

namespace troupe::pipeline {
namespace {

Value one(std::string text) {
  return {{std::move(text)}, false};
}

// "all.pass@1" and "all.pass@1.mean" are the same; .low and .high are the interval's ends.
const double* end_of_figure(const Figures& figures, const std::string& key) {
  if (const auto found = figures.find(key); found != figures.end()) return &found->second.mean;
  const auto dot = key.rfind('.');
  if (dot == key.npos) return nullptr;
  const auto found = figures.find(key.substr(0, dot));
  if (found == figures.end()) return nullptr;
  const std::string end = key.substr(dot + 1);
  if (end == "mean") return &found->second.mean;
  if (end == "low" && found->second.low) return &*found->second.low;
  if (end == "high" && found->second.high) return &*found->second.high;
  return nullptr;
}

std::string near_figure(const Figures& figures, const std::string& key) {
  std::vector<std::string_view> names;
  for (const auto& [name, figure] : figures)
    names.push_back(name);
  return std::string(core::nearest_word(key, names));
}

}  // namespace

bool is_unknown(std::string_view text) {
  return text.find(kUnknown) != text.npos;
}

void Scope::take(const Scope& inner) {
  for (const auto& [name, turn] : inner.stages_)
    stages_[name] = turn;
  for (const auto& [name, point] : inner.searches_)
    searches_[name] = point;
}

const StageTurn* Scope::stage(std::string_view name) const {
  const auto found = stages_.find(name);
  if (found != stages_.end()) return found->second.get();
  return outer_ == nullptr ? nullptr : outer_->stage(name);
}

Result<Value> Scope::look_up(std::string_view name) const {
  const auto dot = name.find('.');
  for (const Scope* at = this; at != nullptr; at = at->outer_) {
    if (dot == name.npos) {
      if (const auto found = at->variables_.find(name); found != at->variables_.end())
        return found->second;
      continue;
    }
    const std::string_view first = name.substr(0, dot), what = name.substr(dot + 1);
    if (const auto found = at->stages_.find(first); found != at->stages_.end())
      return of_stage(*found->second, first, what);
    if (const auto found = at->searches_.find(first); found != at->searches_.end()) {
      const auto value = found->second.find(std::string(what));
      if (value == found->second.end()) {
        return fail(ErrorCode::kConfig, "the points of '" + std::string(first) + "' have no '" +
                                            std::string(what) + "'");
      }
      return value->second;
    }
  }
  return no_such(name);
}

core::Failure Scope::no_such(std::string_view name) const {
  std::vector<std::string_view> names;
  for (const Scope* at = this; at != nullptr; at = at->outer_) {
    for (const auto& [one, value] : at->variables_)
      names.push_back(one);
    for (const auto& [one, value] : at->stages_)
      names.push_back(one);
  }
  const std::string_view first = name.substr(0, name.find('.'));
  const bool is_known = std::ranges::count(names, first) > 0;
  std::string advice = "a stage or variable must come before what refers to it";
  const std::string near(core::nearest_word(first, names));
  if (is_known && stage(first) != nullptr) {
    advice = "write ${" + std::string(first) + ".WHAT}, such as .model, .out or .dir";
  } else if (is_known) {
    advice = "'" + std::string(first) + "' is a variable; write ${" + std::string(first) + "}";
  } else if (!near.empty()) {
    advice = "did you mean '" + near + "'?";
  }
  return fail(ErrorCode::kConfig, "${" + std::string(name) + "}: nothing here has this name",
              advice);
}

Result<Value> Scope::of_stage(const StageTurn& turn,
                              std::string_view stage,
                              std::string_view what) const {
  const std::string full = "${" + std::string(stage) + "." + std::string(what) + "}";
  const auto later = [&] { return one(std::string(1, kUnknown) + full); };
  if (what == "dir") return one(turn.folder.string());
  if (what == "log") return one((turn.folder / "log.txt").string());
  if (what == "cpu_s" || what == "wall_s" || what == "steps") {
    if (!turn.finished()) return later();
    if (what == "steps") return one(std::to_string(turn.record.steps));
    return one(core::printed("%.9g", what == "cpu_s" ? turn.record.cpu_s : turn.record.wall_s));
  }
  if (what.starts_with("figures.")) {
    if (!turn.finished()) return later();
    const std::string key(what.substr(8));
    if (const double* value = end_of_figure(turn.record.figures, key))
      return one(core::printed("%.9g", *value));
    const std::string near = near_figure(turn.record.figures, key);
    return fail(ErrorCode::kData, full + ": stage '" + std::string(stage) + "' gave no such figure",
                (near.empty() ? "its figures are in " + (turn.folder / "stage.json").string()
                              : "did you mean '" + near + "'?"));
  }
  const auto names = output_names(*turn.command);
  if (std::ranges::count(names, what) == 0) {
    std::string all = "dir, log, cpu_s, wall_s, steps, figures.NAME";
    for (const std::string_view name : names)
      all += ", " + std::string(name);
    return fail(ErrorCode::kConfig,
                full + ": a stage of `" + std::string(turn.command->name) + "` has " + all);
  }
  TROUPE_TRY_ASSIGN(path, output(*turn.command, what, turn.folder, turn.finished()));
  return one(path.string());
}

}  // namespace troupe::pipeline
