#include "apps/serving/engine_controls.hpp"

#include <ranges>
#include <string_view>
#include <utility>

namespace troupe::serving {

using Json = nlohmann::ordered_json;
using News = std::vector<engine::GroupNews>;

namespace {

// The values of `name` in a URL's query, such as "mode=keep&tags=weights&tags=kv_cache". Does not
// decode percent escapes, since no accepted value needs them.
std::vector<std::string> query_values(std::string_view query, std::string_view name) {
  std::vector<std::string> values;
  for (const auto part : std::views::split(query, '&')) {
    const std::string_view pair(part.begin(), part.end());
    const auto cut = pair.find('=');
    if (pair.substr(0, cut) != name) continue;
    values.emplace_back(cut == pair.npos ? std::string_view() : pair.substr(cut + 1));
  }
  return values;
}

// The first value of `name`, or `fallback`.
std::string query_value(std::string_view query, std::string_view name, std::string fallback) {
  const std::vector<std::string> values = query_values(query, name);
  return values.empty() ? std::move(fallback) : values.front();
}

Json json_of(const engine::MemoryReport& report) {
  const auto part = [](const engine::MemoryReport::Part& one) {
    return Json{{"before_bytes", one.before}, {"after_bytes", one.after}};
  };
  return {{"weights", part(report.weights)},
          {"kv", part(report.kv)},
          {"weights_held_elsewhere", report.weights_held_elsewhere}};
}

// The mode of /pause. The default is keep, which loses nothing.
Result<engine::PauseMode> pause_mode(const std::string& query) {
  const std::string mode = query_value(query, "mode", "keep");
  if (mode == "abort") return engine::PauseMode::kAbort;
  if (mode == "keep") return engine::PauseMode::kKeep;
  if (mode == "recompute") return engine::PauseMode::kRecompute;
  return fail(ErrorCode::kInvalidArgument, "mode=" + mode, "it is abort, keep or recompute");
}

// The parts that /sleep releases: level 1 the KV blocks, level 2 also the weights.
Result<engine::SleepParts> sleep_parts(const std::string& query, bool can_reload) {
  const std::string level = query_value(query, "level", "1");
  if (level != "1" && level != "2")
    return fail(ErrorCode::kInvalidArgument, "level=" + level, "it is 1 or 2");
  if (level == "2" && !can_reload) {
    return fail(ErrorCode::kInvalidArgument,
                "level=2 would free the weights of a run, which sends each version only once");
  }
  return engine::SleepParts{level == "2", true};
}

struct Wake {
  bool weights = true, kv = true;
};

Result<Wake> wake_parts(const std::string& query) {
  const std::vector<std::string> tags = query_values(query, "tags");
  Wake parts{tags.empty(), tags.empty()};
  for (const std::string& tag : tags) {
    if (tag != "weights" && tag != "kv_cache")
      return fail(ErrorCode::kInvalidArgument, "tags=" + tag, "they are weights and kv_cache");
    (tag == "weights" ? parts.weights : parts.kv) = true;
  }
  return parts;
}

Result<News> pause_engine(engine::EngineDriver& driver, EngineControl& control) {
  TROUPE_TRY_ASSIGN(mode, pause_mode(control.query));
  return driver.pause(mode);
}

Result<News> resume_engine(engine::EngineDriver& driver, EngineControl&) {
  TROUPE_TRY(driver.resume());
  return News();
}

Result<News> sleep_engine(engine::EngineDriver& driver, EngineControl& control) {
  TROUPE_TRY_ASSIGN(parts, sleep_parts(control.query, control.reload != nullptr));
  TROUPE_TRY_ASSIGN(memory, driver.sleep(parts));
  control.report = json_of(memory);
  return News();
}

Result<News> wake_engine(engine::EngineDriver& driver, EngineControl& control) {
  TROUPE_TRY_ASSIGN(wanted, wake_parts(control.query));
  const engine::EngineState state = driver.engine()->state();
  if (wanted.weights && state.weights == engine::WeightsState::kAsleep) {
    TROUPE_TRY_ASSIGN(weights, control.reload());  // first, so that a failure changes nothing
    TROUPE_TRY_ASSIGN(memory, driver.wake({true, false}));
    memory.weights.after = weights->bytes();
    TROUPE_TRY(driver.set_weights(std::move(weights), engine::KvAction::kRecompute));
    control.report["weights"] = json_of(memory)["weights"];
  }
  if (wanted.kv && state.kv_asleep) {
    TROUPE_TRY_ASSIGN(memory, driver.wake({false, true}));
    control.report["kv"] = json_of(memory)["kv"];
  }
  return News();
}

}  // namespace

std::span<const ControlRow> control_rows() {
  static constexpr ControlRow kRows[] = {
      {"/pause", &pause_engine},
      {"/resume", &resume_engine, "/is_paused", &paused_page},
      {"/sleep", &sleep_engine},
      {"/wake_up", &wake_engine, "/is_sleeping", &sleeping_page}};
  return kRows;
}

}  // namespace troupe::serving
