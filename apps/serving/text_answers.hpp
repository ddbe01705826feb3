// Answers to requests that count or convert tokens, without a sample. Pure; on threads for texts.
#pragma once

#include "runtime/dialects/generate_request.hpp"
#include "runtime/dialects/served_model.hpp"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <variant>

namespace troupe::serving {

using TextAnswer = std::variant<nlohmann::ordered_json, dialects::ApiError>;

using TextConversion = TextAnswer(const dialects::ServedModel& model,
                                  const dialects::ServeBounds& bounds,
                                  const std::string& body);
TextConversion tokenize, detokenize, count_tokens;

// The error of a server without a tokenizer.
dialects::ApiError no_tokenizer();

}  // namespace troupe::serving
