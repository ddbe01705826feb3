// The JSON of a request's body as a value, counted while it is read: what is nested too deep or
// holds too much is refused at that place, whatever follows, so that no body costs more than its
// bytes and a bounded number of values. Pure; any thread.
#pragma once

#include "apps/serving/generate_request.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <variant>

namespace troupe::app {

// The body as an object, at most kJsonDepth_max deep. Bounded are the lists that the engine bounds
// (logit_bias, stop, stop_token_ids), prompts and the token ids of each, and all values together.
std::variant<nlohmann::json, ApiError> read_object(const std::string& body,
                                                   const ServeBounds& bounds);

}  // namespace troupe::app
