#include "actors/reward/python_reward.hpp"

#include "actors/reward/python_worker_source.hpp"
#include "actors/reward/reward_json.hpp"
#include "actors/reward/worker_process.hpp"

#include <nlohmann/json.hpp>
#include <unistd.h>

namespace troupe::actors {
namespace {

using core::ErrorCode;
using nlohmann::json;

constexpr core::Duration kStartDeadline = std::chrono::seconds(60);  // imports may be slow

// Keeps the end of a traceback, where the exception is.
std::string tail(const std::string& text) {
  constexpr std::size_t kTail_bytes_max = 1200;
  return text.size() <= kTail_bytes_max ? text : "..." + text.substr(text.size() - kTail_bytes_max);
}

class PythonReward final : public RewardSource {
 public:
  PythonReward(std::filesystem::path file, std::uint64_t calls_max)
      : file_(std::move(file)), calls_max_(calls_max) {}

  std::string name() const override { return file_.stem().string(); }
  RewardReads reads() const override { return reads_; }

  core::Result<void> ensure_started() {
    if (worker_.running() && calls_ < calls_max_) return {};
    calls_ = 0;
    TROUPE_TRY(worker_.start({"python3", "-c", kPythonWorkerSource, file_.string(), "3"}));
    auto line = worker_.read_line(kStartDeadline);
    if (!line) return core::fail(line.error().within(where()));
    const json ready = json::parse(*line, nullptr, false);
    if (ready.is_object() && ready.value("ready", false)) {
      reads_ = reads_of(ready);
      return {};
    }
    worker_.kill();
    return core::fail(
        ErrorCode::kConfig,
        where() + " does not load: " + tail(ready.is_object() ? ready.value("error", "") : *line));
  }

  core::Result<std::vector<RewardScore>> score(const std::vector<RewardGroup>& groups,
                                               core::Duration deadline) override {
    // The file loaded before, so this error may pass: the file is being edited, or memory is short.
    if (auto started = ensure_started(); !started) {
      return core::fail(ErrorCode::kPeerLost, started.error().message);
    }
    ++calls_;
    auto reply = exchange(groups, deadline);
    if (!reply) {
      worker_.kill();
      return core::fail(reply.error().within(where()));
    }
    if (reply->contains("error")) {
      return core::fail(ErrorCode::kData,
                        where() + " raised: " + tail((*reply)["error"].get<std::string>()));
    }
    std::vector<RewardScore> scores;
    for (const auto& value : (*reply)["rewards"]) {
      if (value.is_number()) {
        scores.push_back({value.get<double>(), ""});
      } else {
        scores.push_back({std::nullopt, where() + " returned no finite number for the sample"});
      }
    }
    if (auto added = add_extras(extras_of(*reply), scores); !added) {
      return core::fail(added.error().within(where()));
    }
    return scores;
  }

 private:
  // Reads `columns` of the worker's first line: null for all columns, else a list of names.
  static RewardReads reads_of(const json& ready) {
    RewardReads reads;
    const json columns = ready.value("columns", json());
    reads.all_columns = !columns.is_array();
    if (columns.is_array()) reads.columns = columns.get<std::vector<std::string>>();
    reads.messages = ready.value("messages", false);
    reads.tokens = ready.value("tokens", false);
    return reads;
  }

  static std::vector<std::string> extras_of(const json& reply) {
    std::vector<std::string> extras;
    for (const json& extra : reply.value("extras", json::array()))
      extras.push_back(extra.is_object() && !extra.empty() ? dump(extra) : std::string());
    return extras;
  }

  static std::string dump(const json& value) {
    return value.dump(-1, ' ', false, json::error_handler_t::replace);
  }

  std::string where() const { return "reward function " + file_.string(); }

  core::Result<json> exchange(const std::vector<RewardGroup>& groups, core::Duration deadline) {
    const auto until = core::TimePoint(std::chrono::steady_clock::now()) + deadline;
    const std::uint64_t id = ++next_id_;
    TROUPE_TRY(worker_.send_line(request_line(id, groups), deadline));
    for (;;) {
      const core::Duration left = until - core::TimePoint(std::chrono::steady_clock::now());
      TROUPE_TRY_ASSIGN(line, worker_.read_line(left));
      json reply = json::parse(line, nullptr, false);
      if (!reply.is_object() || !reply.contains("id")) {
        return core::fail(ErrorCode::kData, "the worker's reply is not a JSON object");
      }
      if (reply["id"] != id) continue;
      const bool whole = reply.contains("error") || (reply.contains("rewards") &&
                                                     reply["rewards"].size() == samples_in(groups));
      if (!whole) return core::fail(ErrorCode::kData, "the reply has the wrong number of rewards");
      return reply;
    }
  }

  static std::string request_line(std::uint64_t id, const std::vector<RewardGroup>& groups) {
    json request = {{"id", id},
                    {"groups", json::array()},
                    {"update", groups.empty() ? 0 : groups.front().update}};
    for (const RewardGroup& group : groups) {
      json columns = json::parse(group.columns.empty() ? "{}" : group.columns, nullptr, false);
      json messages = json::parse(group.messages.empty() ? "null" : group.messages, nullptr, false);
      json one = {{"prompt", group.prompt},
                  {"label", group.label},
                  {"columns", columns.is_object() ? std::move(columns) : json::object()},
                  {"messages", messages.is_array() ? std::move(messages) : json()},
                  {"responses", json::array()},
                  {"tokens", json::array()}};
      for (const RewardSample& sample : group.samples) {
        one["responses"].push_back(sample.response);
        one["tokens"].push_back(sample.tokens);
      }
      request["groups"].push_back(std::move(one));
    }
    return dump(request);
  }

  const std::filesystem::path file_;
  const std::uint64_t calls_max_;  // then the worker is replaced
  WorkerProcess worker_;
  RewardReads reads_;
  std::uint64_t next_id_ = 0;
  std::uint64_t calls_ = 0;
};

}  // namespace

core::Result<std::unique_ptr<RewardSource>> make_python_reward(std::filesystem::path file,
                                                               std::uint64_t calls_max) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) {
    return core::fail(ErrorCode::kConfig, "reward.python: there is no file " + file.string());
  }
  auto reward = std::make_unique<PythonReward>(std::move(file), calls_max);
  if (auto started = reward->ensure_started(); !started) {
    return core::fail(ErrorCode::kConfig, started.error().message);
  }
  return {std::unique_ptr<RewardSource>(std::move(reward))};
}

}  // namespace troupe::actors
