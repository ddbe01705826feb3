// A refusal or failure in the form of OpenAI's API: {"error": {message, type, param, code}} with
// its HTTP status. Values; pure functions; any thread.
#pragma once

#include "runtime/core/error.hpp"
#include "runtime/net/http.hpp"

#include <string>

namespace troupe::app {

struct ApiError {
  int status = 400;
  std::string message{};
  std::string param{};  // the field at fault; null in the JSON when empty
  std::string code{};   // as "model_not_found"; null when empty
  int retry_after_s = 0;
};

std::string api_error_json(const ApiError& error);
net::HttpResponse api_error_response(const ApiError& error);

// Translates an error of the engine or the tokenizer for a client: kOverloaded is 503, kData and
// kInvalidArgument are 400 (the advice of the message stays), the rest is 500.
ApiError api_error_of(const core::Error& error);

}  // namespace troupe::app
