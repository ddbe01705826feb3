// Handles the paths that change the engine's state, named as in vLLM: /pause, /resume, /sleep and
// /wake_up.
#include "apps/serving/api_service.hpp"

#include <nlohmann/json.hpp>

#include <ranges>
#include <string_view>
#include <utility>

namespace troupe::app {

using core::ErrorCode;
using core::fail;
using core::Result;
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
  if (level != "1" && level != "2") {
    return fail(ErrorCode::kInvalidArgument, "level=" + level, "it is 1 or 2");
  }
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
    if (tag != "weights" && tag != "kv_cache") {
      return fail(ErrorCode::kInvalidArgument, "tags=" + tag, "they are weights and kv_cache");
    }
    (tag == "weights" ? parts.weights : parts.kv) = true;
  }
  return parts;
}

}  // namespace

async::task<net::HttpResponse> ApiService::control(ApiService* self,
                                                   net::HttpRequest request,
                                                   std::optional<std::size_t> key) {
  const std::vector<ApiKey>& keys = self->parts_.keys.list();
  if (key && !keys[*key].control) {
    co_return complaint(403,
                        "the API key '" + keys[*key].name +
                            "' may not control this server; that is the word `control` behind it "
                            "in the file of --api-key-file",
                        request.path);
  }
  if (!self->parts_.loopback && !self->parts_.keys.any()) {
    const std::string why = "beyond loopback " + request.path + " wants a server with an API key";
    co_return complaint(403, why, request.path);
  }
  auto report = std::make_shared<Json>(Json::object());
  const auto reload = self->parts_.reload;
  EnginePump::Call call = [path = request.path, query = request.query, report,
                           reload](engine::EngineDriver& driver) -> Result<News> {
    if (path == "/pause") {
      TROUPE_TRY_ASSIGN(mode, pause_mode(query));
      return driver.pause(mode);
    }
    if (path == "/resume") {
      TROUPE_TRY(driver.resume());
      return News();
    }
    if (path == "/sleep") {
      TROUPE_TRY_ASSIGN(parts, sleep_parts(query, reload != nullptr));
      TROUPE_TRY_ASSIGN(memory, driver.sleep(parts));
      *report = json_of(memory);
      return News();
    }
    TROUPE_TRY_ASSIGN(wanted, wake_parts(query));
    const engine::EngineState state = driver.engine()->state();
    if (wanted.weights && state.weights == engine::WeightsState::kAsleep) {
      TROUPE_TRY_ASSIGN(weights,
                        reload());  // first, so that a failure changes nothing
      TROUPE_TRY_ASSIGN(memory, driver.wake({true, false}));
      memory.weights.after = weights->bytes();
      TROUPE_TRY(driver.set_weights(std::move(weights), engine::KvAction::kRecompute));
      (*report)["weights"] = json_of(memory)["weights"];
    }
    if (wanted.kv && state.kv_asleep) {
      TROUPE_TRY_ASSIGN(memory, driver.wake({false, true}));
      (*report)["kv"] = json_of(memory)["kv"];
    }
    return News();
  };
  auto calling = self->parts_.pump.on_engine(std::move(call));
  const Result<void> done = co_await std::move(calling);
  if (!done) co_return dialects::api_error_response(dialects::api_error_of(done.error()));
  net::HttpResponse response;
  response.body = report->dump();
  co_return response;
}

}  // namespace troupe::app
