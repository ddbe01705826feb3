// The lines between a Python reward and its workers (python_worker.py), as JSON. Pure.
#pragma once

#include "actors/reward/reward_source.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::actors::reward {

// What a worker says of its function in its first line.
struct PythonGreeting {
  RewardReads reads;
  std::vector<std::string> needs;  // columns without which it cannot be called
  bool is_async = false;
};

// The key that names the interpreter of a reward's workers.
inline constexpr const char* kInterpreterKey = "reward.interpreter";

// Error kConfig: the file does not load; with the end of the traceback.
core::Result<PythonGreeting> read_greeting(const nlohmann::json& line, const std::string& where);

std::string python_request(std::uint64_t id, const std::vector<RewardGroup>& groups);

// `count` scores. Error kData: the function raised, or the reply is not one.
core::Result<std::vector<RewardScore>> read_python_reply(const nlohmann::json& reply,
                                                         std::size_t count,
                                                         const std::string& where);

}  // namespace troupe::actors::reward
