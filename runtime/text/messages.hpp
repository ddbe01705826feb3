// What a message of a chat may hold, and its checks: the one reader of messages, tools and template
// variables, for requests and for rows of datasets. A message goes to the chat template with all
// its names, as it was written. Pure functions; any thread. The caller bounds the JSON.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/text/chat_template.hpp"

#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <string>

namespace troupe::text {

// What is wrong with a message, and where in it: ".tool_calls[0].function.arguments", or "" for the
// message itself.
struct MessageFault {
  std::string field;
  std::string why;  // "must be ...", "is missing"
};

// Checks a message: an object with a role; a content that is text or a list of text parts, which
// only an assistant's message with tool calls or a reasoning text may lack; tool calls with a name
// each, whose arguments are an object, the text of one, or nothing.
std::optional<MessageFault> check_message(const nlohmann::ordered_json& message);

// The arguments of a call, which are an object or, as OpenAI writes them, a text that holds one.
// None, null and an empty text are an empty object. Nothing if `given` is no object and holds none.
std::optional<nlohmann::ordered_json> arguments_of(const nlohmann::ordered_json& given);

// True if the content is a list of parts of text, and of nothing else.
bool has_text_parts(const nlohmann::ordered_json& message);

// The text of a content that was checked: its parts joined. Empty where there is none.
std::string text_of_content(const nlohmann::ordered_json& message);

// A message of a row, checked, with its "weight". The error (kData) begins with the field.
core::Result<ChatMessage> message_of(const nlohmann::ordered_json& message);

// True if the message holds no text, no call and no reasoning.
bool says_nothing(const ChatMessage& message);

// The message with other words in its content's place, and without its reasoning.
ChatMessage with_words(const ChatMessage& message, const std::string& words);

// The JSON text of a row's tools: a list of objects, or a text that holds one. Empty for none
// (null, an empty list or text). Error kData: why it is neither.
core::Result<std::string> tools_of(const nlohmann::ordered_json& tools);

// The JSON text of further template variables (chat_template_kwargs): an object, or a text that
// holds one. Empty for none. Error kData: why it is neither, or the name that may not be set.
core::Result<std::string> variables_of(const nlohmann::ordered_json& variables);

}  // namespace troupe::text
