// Whether a model that learns from a chat template's answers learns to stop: a note where the
// template ends an answer with a token at which the model's responses do not end. A pure function.
#pragma once

#include "runtime/text/chat_template.hpp"
#include "runtime/text/tokenizer.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace troupe::data {

// `ends`: the tokens that end a response. Nothing where the answer ends with one of them, or with
// no special token at all, and where the template does not render a question with its answer.
std::optional<std::string> answer_end_note(const text::Tokenizer& tokenizer,
                                           const text::ChatTemplate& chat,
                                           std::span<const std::int32_t> ends);

}  // namespace troupe::data
