// Errors in the form of each API, with an HTTP status. OpenAI's:
// {"error": {message, type, param, code}}; Anthropic's:
// {"type": "error", "error": {type, message}}. Values and pure functions; any thread.
#pragma once

#include "runtime/core/error.hpp"
#include "runtime/net/http.hpp"

#include <string>
#include <string_view>

namespace troupe::dialects {

struct ApiError {
  int status = 400;
  std::string message{};
  std::string param{};    // the field at fault; null in the JSON when empty
  std::string code{};     // such as "model_not_found"; null in the JSON when empty
  int retry_after_s = 0;  // Retry-After in seconds; 0: no such header, or 1 s for status 503
};

// Whose API an error is written for.
enum class ErrorForm { kOpenAi, kAnthropic };

// That of the requests to a path: kAnthropic for /v1/messages and what is below it.
ErrorForm error_form_of(std::string_view path);

std::string api_error_json(const ApiError& error, ErrorForm form = ErrorForm::kOpenAi);
net::HttpResponse api_error_response(const ApiError& error, ErrorForm form = ErrorForm::kOpenAi);

// Translates an error of the engine or the tokenizer for a client, keeping its message. The status
// is 400 for kInvalidArgument, kData and kResources, 501 for kUnsupported, 503 for kOverloaded and
// kClosed, 504 for kDeadline, and 500 for all others.
ApiError api_error_of(const core::Error& error);

}  // namespace troupe::dialects
