// The grammar of a response that must be calls of tools: written as the model's format writes them,
// with arguments of the tool's own schema. Pure; any thread.
#pragma once

#include "runtime/dialects/api_error.hpp"
#include "runtime/dialects/generate_request.hpp"
#include "runtime/dialects/tools/tool_format.hpp"
#include "runtime/guide/grammar.hpp"
#include "runtime/text/tokenizer.hpp"

#include <variant>

namespace troupe::dialects {

// The grammar for the request's `must_call`, `called_tool` and so on. `tokenizer`: which of
// the marks around calls are special tokens. Errors name the tool at fault.
std::variant<guide::Grammar, ApiError> forced_call(const GenerateRequest& request,
                                                   ToolFormat format,
                                                   const text::Tokenizer& tokenizer);

}  // namespace troupe::dialects
