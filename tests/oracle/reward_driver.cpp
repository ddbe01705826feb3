// Scores lines of JSON by the real reward role with an HTTP source, for reward_http_test.py.
// usage: reward_driver URL; each input line is {"prompt", "response", "label"} with a list of
// responses; each output line
// {"values": [number or null], "causes": [...]} or {"error": ..., "code": ...}.
#include "actors/reward/http_reward.hpp"
#include "actors/reward/reward_role.hpp"
#include "runtime/async/device_thread.hpp"
#include "runtime/async/io_threads.hpp"

#include <nlohmann/json.hpp>

#include <iostream>
#include <string>

namespace {

using nlohmann::json;
using namespace troupe;

async::task<void> score(actors::RewardRole* role,
                        actors::Score request,
                        core::Result<actors::Scores>* out) {
  auto scores = co_await role->on(std::move(request));
  *out = std::move(scores);
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
  auto source = actors::make_http_reward(argc > 1 ? argv[1] : "");
  if (!source) {
    std::cerr << source.error().message << "\n";
    return core::exit_status(source.error().code);
  }
  async::IoThreads io(1);
  async::DeviceThread device("reward");
  actors::RoleContext context;
  context.device = &device;
  actors::RewardRole role(context, std::move(*source), std::chrono::seconds(60));
  for (std::string line; std::getline(std::cin, line);) {
    const json given = json::parse(line);
    actors::Score request;
    request.group.prompt = given["prompt"];
    request.group.label = given["label"];
    for (const json& response : given["response"])
      request.group.samples.push_back({response});
    core::Result<actors::Scores> out = core::fail(core::ErrorCode::kInternal, "");
    io.run(score(&role, std::move(request), &out));
    std::cout << reply_of(out).dump() << std::endl;
  }
  return 0;
}
