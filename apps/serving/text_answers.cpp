#include "apps/serving/text_answers.hpp"

#include "runtime/dialects/readers.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace troupe::serving {

using dialects::ApiError;
using dialects::ServeBounds;
using dialects::ServedModel;
using dialects::TokenizeRequest;
using Json = nlohmann::ordered_json;

namespace {

// A request that was read, or why it is refused.
using Wanted = std::variant<TokenizeRequest, ApiError>;

std::optional<ApiError> refusal_of(const ServedModel& model, const Wanted& read) {
  if (const auto* error = std::get_if<ApiError>(&read)) return *error;
  const std::string& name = std::get<TokenizeRequest>(read).model;
  if (!name.empty())
    if (auto error = check_model_name(model, name)) return error;
  if (!model.tokenizer) return no_tokenizer();
  return std::nullopt;
}

}  // namespace

ApiError no_tokenizer() {
  return {.status = 404,
          .message = "this server has no tokenizer (--skip-tokenizer-init)",
          .code = "not_found"};
}

TextAnswer tokenize(const ServedModel& model, const ServeBounds& bounds, const std::string& body) {
  const Wanted read = read_tokenize(body, bounds);
  if (auto error = refusal_of(model, read)) return *error;
  const auto& wanted = std::get<TokenizeRequest>(read);
  auto encoded = encode_tokenize(model, wanted);
  if (auto* error = std::get_if<ApiError>(&encoded)) return *error;
  const auto& tokens = std::get<std::vector<std::int32_t>>(encoded);
  Json strings;
  for (const std::int32_t token : tokens) {
    if (wanted.token_strings) strings.push_back(model.tokenizer->id_to_token(token).value_or(""));
  }
  return Json{{"count", tokens.size()},
              {"max_model_len", model.context},
              {"tokens", tokens},
              {"token_strs", std::move(strings)}};
}

TextAnswer detokenize(const ServedModel& model,
                      const ServeBounds& bounds,
                      const std::string& body) {
  const Wanted read = read_detokenize(body, bounds);
  if (auto error = refusal_of(model, read)) return *error;
  auto text = model.tokenizer->decode(std::get<TokenizeRequest>(read).tokens);
  if (!text) return dialects::api_error_of(text.error());
  return Json{{"prompt", *text}};
}

TextAnswer count_tokens(const ServedModel& model,
                        const ServeBounds& bounds,
                        const std::string& body) {
  const Wanted read = dialects::read_count_tokens(body, bounds);
  if (auto error = refusal_of(model, read)) return *error;
  auto encoded = encode_tokenize(model, std::get<TokenizeRequest>(read));
  if (auto* error = std::get_if<ApiError>(&encoded)) return *error;
  return Json{{"input_tokens", std::get<std::vector<std::int32_t>>(encoded).size()}};
}

}  // namespace troupe::serving
