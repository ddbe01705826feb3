// The control calls, named as in vLLM: pause, resume, sleep, wake up. A row and a function of
// engine_controls.cpp each. The functions are for the engine's thread.
#pragma once

#include "apps/serving/server_pages.hpp"
#include "runtime/engine/driver.hpp"

#include <nlohmann/json.hpp>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::serving {

// Loads the weights again after a sleep that freed them; null: such a sleep is refused.
using ReloadWeights = std::function<core::Result<std::shared_ptr<const model::PackedWeights>>()>;

struct EngineControl {
  std::string query, body;  // of the request
  ReloadWeights reload;
  nlohmann::ordered_json report = nlohmann::ordered_json::object();  // the answer
};

// Returns what became of samples. Errors: kInvalidArgument for an unknown query;
// those of the engine.
using EngineAction = core::Result<std::vector<engine::GroupNews>>(engine::EngineDriver& driver,
                                                                  EngineControl& control);
struct ControlRow {
  std::string_view path;  // of the POST
  EngineAction* action;
  std::string_view state_path = {};  // of a GET that says the state
  ServerPage* state = nullptr;
};
std::span<const ControlRow> control_rows();

}  // namespace troupe::serving
