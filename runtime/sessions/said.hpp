// What a client is told that the model said: the text of a response and the assistant's message of
// a dialogue, with calls of tools. A session compares what comes back with it. Pure; any thread.
#pragma once

#include "runtime/dialects/generate_request.hpp"
#include "runtime/dialects/served_model.hpp"
#include "runtime/engine/types.hpp"
#include "runtime/sessions/history.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <string>

namespace troupe::sessions {

struct Said {
  std::string text;                // without special tokens, calls included
  nlohmann::ordered_json message;  // {"role": "assistant", "content", "tool_calls"}
};

// `answer_id`: of the answer, which ids of calls are made of; `choice`: the sample's place in it.
// Errors: those of decoding.
core::Result<Said> said_of(const dialects::ServedModel& model,
                           const dialects::GenerateRequest& request,
                           const std::string& answer_id,
                           std::size_t choice,
                           const engine::Sample& sample);

// The call that was answered so.
Call call_of(const CallPrompt& prompt, const Said& said, const engine::Sample& sample);

}  // namespace troupe::sessions
