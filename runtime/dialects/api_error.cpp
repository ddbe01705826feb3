#include "runtime/dialects/api_error.hpp"

#include "runtime/dialects/json_text.hpp"

namespace troupe::dialects {

namespace {

// The error type for an HTTP status. The two APIs share most words.
std::string error_type(int status, ErrorForm form) {
  const bool anthropic = form == ErrorForm::kAnthropic;
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return anthropic ? "not_found_error" : "invalid_request_error";
    case 413:
      return anthropic ? "request_too_large" : "invalid_request_error";
    case 429:
      return "rate_limit_error";
    case 503:
      return "overloaded_error";
    case 504:
      return anthropic ? "timeout_error" : "server_error";
    default:
      break;
  }
  if (status < 500) return "invalid_request_error";
  return anthropic ? "api_error" : "server_error";
}

}  // namespace

ErrorForm error_form_of(std::string_view path) {
  constexpr std::string_view kMessages = "/v1/messages";
  const auto at = path.find(kMessages);
  if (at == path.npos) return ErrorForm::kOpenAi;
  const std::string_view rest = path.substr(at + kMessages.size());
  return rest.empty() || rest.front() == '/' ? ErrorForm::kAnthropic : ErrorForm::kOpenAi;
}

std::string api_error_json(const ApiError& error, ErrorForm form) {
  const auto or_null = [](const std::string& text) {
    return text.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(text);
  };
  const std::string type = error_type(error.status, form);
  if (form == ErrorForm::kAnthropic)
    return json_text({{"type", "error"}, {"error", {{"type", type}, {"message", error.message}}}});
  return json_text({{"error",
                     {{"message", error.message},
                      {"type", type},
                      {"param", or_null(error.param)},
                      {"code", or_null(error.code)}}}});
}

net::HttpResponse api_error_response(const ApiError& error, ErrorForm form) {
  net::HttpResponse response;
  response.status = error.status;
  response.body = api_error_json(error, form);
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
    case core::ErrorCode::kNumeric:
      return {.status = 500,
              .message =
                  "the model gives no finite numbers for this prompt, since its weights are "
                  "damaged or overflow (" +
                  error.message + "); serve other weights",
              .code = "not_finite"};
    default:
      return {.status = 500, .message = error.message};
  }
}

}  // namespace troupe::dialects
