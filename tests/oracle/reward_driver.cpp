// Scores lines of JSON by the real reward role, with an HTTP or a Python reward, for
// reward_http_test.py and tests/perf/reward_latency.py.
// usage: reward_driver [--sample] [--together] URL...
//        reward_driver [--together] --python FILE WORKERS
// Each input line is {"prompt", "response", "label"} with a list of responses; each output line
// {"values": [number or null], "causes": [...]} or {"error": ..., "code": ...}, in the order of the
// input. With --together all lines are scored at the same time.
#include "actors/reward/http_reward.hpp"
#include "actors/reward/python_reward.hpp"
#include "actors/reward/reward_role.hpp"
#include "runtime/async/device_thread.hpp"
#include "runtime/async/io_threads.hpp"
#include "runtime/async/run_on.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

namespace {

using nlohmann::json;
using namespace troupe;

core::Result<std::unique_ptr<actors::reward::RewardCalls>> reward_of(std::vector<std::string> words,
                                                                     bool samples) {
  if (words.size() == 3 && words[0] == "--python") {
    return actors::reward::make_python_reward(
        {.python = words[1], .workers = std::stoul(words[2])});
  }
  return actors::reward::make_http_reward(
      std::move(words),
      samples ? actors::reward::RewardFormat::kSample : actors::reward::RewardFormat::kOpenRlhf);
}

async::task<core::Result<void>> score(actors::reward::RewardRole* role,
                                      actors::Score request,
                                      core::Result<actors::Scores>* out) {
  auto scores = co_await role->on(std::move(request));
  *out = std::move(scores);
  co_return core::Result<void>();
}

async::task<void> score_all(actors::reward::RewardRole* role,
                            const std::vector<actors::Score>* requests,
                            std::vector<core::Result<actors::Scores>>* out) {
  std::vector<async::task<core::Result<void>>> tasks;
  for (std::size_t i = 0; i < requests->size(); ++i)
    tasks.push_back(score(role, (*requests)[i], &(*out)[i]));
  (void)co_await async::all(std::move(tasks));
}

async::task<void> begin(std::optional<actors::reward::RewardRole>* role,
                        actors::RoleContext context,
                        std::unique_ptr<actors::reward::RewardCalls>* reward) {
  role->emplace(std::move(context), std::move(*reward), std::chrono::seconds(60));
  co_return;
}

async::task<void> end(async::Scope* scope) {
  scope->cancel();
  (void)co_await scope->join();
}

actors::Score request_of(const std::string& line) {
  const json given = json::parse(line);
  actors::Score request;
  request.group.prompt = given["prompt"];
  request.group.label = given["label"];
  for (const json& response : given["response"])
    request.group.samples.push_back({response});
  return request;
}

json reply_of(const core::Result<actors::Scores>& scores) {
  if (!scores) {
    return {{"error", scores.error().message}, {"code", core::error_name(scores.error().code)}};
  }
  json values = json::array();
  for (const auto& value : scores->values)
    values.push_back(value ? json(*value) : json());
  return {{"values", values}, {"causes", scores->causes}};
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  const bool samples = std::erase(words, "--sample") > 0;
  const bool together = std::erase(words, "--together") > 0;
  auto reward = reward_of(std::move(words), samples);
  if (!reward) {
    std::cerr << reward.error().message << "\n";
    return core::exit_status(reward.error().code);
  }
  async::IoThreads io(1);
  async::DeviceThread device("reward");
  async::SteadyTimers timers;
  async::Scope scope(io.make_strand());
  actors::RoleContext context;
  context.device = &device;
  context.timers = &timers;
  context.scope = &scope;
  std::optional<actors::reward::RewardRole> role;
  io.run(async::run_on(scope.executor(), begin(&role, context, &*reward)));
  std::vector<actors::Score> requests;
  const auto answer = [&] {
    std::vector<core::Result<actors::Scores>> out(
        requests.size(), core::fail(core::ErrorCode::kInternal, "not scored"));
    io.run(async::run_on(scope.executor(), score_all(&*role, &requests, &out)));
    for (const auto& scores : out)
      std::cout << reply_of(scores).dump() << std::endl;
    requests.clear();
  };
  for (std::string line; std::getline(std::cin, line);) {
    requests.push_back(request_of(line));
    if (!together) answer();
  }
  answer();
  for (const auto& [name, value] : role->amounts())
    std::cerr << name << " " << value << "\n";
  io.run(async::run_on(scope.executor(), end(&scope)));
  return 0;
}
