#include "runtime/dialects/api_error.hpp"

#include <nlohmann/json.hpp>

namespace troupe::dialects {

namespace {

// OpenAI's error type for an HTTP status.
std::string error_type(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 429:
      return "rate_limit_error";
    case 503:
      return "overloaded_error";
    default:
      return status >= 500 ? "server_error" : "invalid_request_error";
  }
}

}  // namespace

std::string api_error_json(const ApiError& error) {
  const auto or_null = [](const std::string& text) {
    return text.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(text);
  };
  const nlohmann::ordered_json body = {{"error",
                                        {{"message", error.message},
                                         {"type", error_type(error.status)},
                                         {"param", or_null(error.param)},
                                         {"code", or_null(error.code)}}}};
  return body.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

net::HttpResponse api_error_response(const ApiError& error) {
  net::HttpResponse response;
  response.status = error.status;
  response.body = api_error_json(error);
  if (error.status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  const int wait_s = error.status == 503 && error.retry_after_s == 0 ? 1 : error.retry_after_s;
  if (wait_s > 0) response.headers.emplace_back("Retry-After", std::to_string(wait_s));
  return response;
}

ApiError api_error_of(const core::Error& error) {
  switch (error.code) {
    case core::ErrorCode::kInvalidArgument:
    case core::ErrorCode::kData:
    case core::ErrorCode::kResources:  // a request that could never fit
      return {.status = 400, .message = error.message};
    case core::ErrorCode::kUnsupported:
      return {.status = 501, .message = error.message};
    case core::ErrorCode::kOverloaded:
      return {.status = 503, .message = error.message, .code = "overloaded"};
    case core::ErrorCode::kClosed:
      return {.status = 503, .message = error.message, .code = "unavailable"};
    case core::ErrorCode::kDeadline:
      return {.status = 504, .message = error.message};
    default:
      return {.status = 500, .message = error.message};
  }
}

}  // namespace troupe::dialects
